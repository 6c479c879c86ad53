/* The status of each MPA between its rounds: text, and a tree only of the one that is looked at. */
#include "entry.h"

static void put(struct entry *e, char **place, char *text)
{
    struct controller *c = e->controller;
    if (*place && c->unpacked.text == *place) {
        json_decref(c->unpacked.tree);
        c->unpacked.tree = NULL;
        c->unpacked.text = NULL;
    }
    free(*place);
    *place = text;
}

void entry_keep_status(struct entry *e, char **place, const json_t *status)
{
    put(e, place, status ? json_dumps(status, JSON_COMPACT) : NULL);
}

void entry_move_status(struct entry *e, char **from, char **to)
{
    char *text = *from;
    *from = NULL;
    put(e, to, text);
}

void entry_forget_status(struct entry *e)
{
    put(e, &e->written, NULL);
    put(e, &e->written_before, NULL);
}

const json_t *entry_status(const struct entry *e)
{
    struct controller *c = e->controller;
    if (e->written && c->unpacked.text != e->written) {
        json_decref(c->unpacked.tree);
        c->unpacked.tree = json_loads(e->written, 0, NULL);
        c->unpacked.text = e->written;
    }
    return e->written ? c->unpacked.tree : NULL;
}
