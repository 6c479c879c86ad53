#include "base/base.h"

#include <string.h>

#define LEAST     8 /* characters of a secret: fewer may be chance, and tell little */
#define NO_SECRET 4 /* what is shorter would take words out of every sentence */

/* How much of the text, from its begin on, stands anywhere in the secret; 0 where less than least.
 */
static size_t repeated(const char *text, const char *secret, size_t len, size_t least)
{
    size_t longest = 0;
    if (strnlen(text, least) < least)
        return 0;
    for (const char *at = secret; (at = memmem(at, len - (size_t)(at - secret), text, least));
         at++) {
        size_t n = least;
        while (at[n] && at[n] == text[n])
            n++;
        longest = n > longest ? n : longest;
    }
    return longest;
}

void text_hide(char *text, const char *secret)
{
    size_t len = secret ? strlen(secret) : 0, least = len < LEAST ? len : LEAST;
    while (len >= NO_SECRET && *text) {
        size_t n = repeated(text, secret, len, least);
        memset(text, '*', n);
        text += n > 0 ? n : 1;
    }
}
