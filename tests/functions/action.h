/* The server as the container of an OpenWhisk action: POST /init tells it once what to do, POST
 * /run has it done. All functions may be called by any thread. */
#ifndef ACTION_H
#define ACTION_H

#include <stddef.h>

struct answer {
    unsigned status;
    char *json; /* to be freed; NULL without memory */
};

/* {"value": {"name": …, "code": FUNCTION}}: the function is the code. */
struct answer action_init(const char *body, size_t length);
/* {"value": {"n": …}}, n being optional. */
struct answer action_run(const char *body, size_t length);

#endif
