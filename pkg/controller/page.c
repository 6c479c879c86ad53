#include "page.h"

#include <openssl/evp.h>
#include <string.h>

/* Joined from pkg/controller/page by make; NUL-terminated. */
extern const char page_text[];
__asm__(".pushsection .rodata\n"
        ".global page_text\n"
        "page_text: .incbin \"build/page/index.html\"\n"
        ".byte 0\n"
        ".popsection\n");

const char *page_html(size_t *len)
{
    *len = strlen(page_text);
    return page_text;
}

/* " 'sha256-…'" of each element of this name. */
static void add_hashes(struct buf *out, const char *html, const char *open, const char *close)
{
    uint8_t hash[EVP_MAX_MD_SIZE];
    unsigned len;
    for (const char *at = html; (at = strstr(at, open)) != NULL;) {
        const char *begin = strchr(at, '>'), *end = begin ? strstr(begin, close) : NULL;
        if (!end)
            return;
        begin++;
        if (EVP_Digest(begin, (size_t)(end - begin), hash, &len, EVP_sha256(), NULL) == 1) {
            cleanup_free char *text = base64_encode(hash, len);
            (void)!buf_printf(out, " 'sha256-%s'", text);
        }
        at = end;
    }
}

char *page_policy(const char *html)
{
    struct buf out;
    buf_init(&out, 8192);
    (void)!buf_puts(&out, "default-src 'none'; script-src");
    add_hashes(&out, html, "<script", "</script>");
    (void)!buf_puts(&out, "; style-src");
    add_hashes(&out, html, "<style", "</style>");
    (void)!buf_puts(&out, "; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
                          "form-action 'none'; frame-ancestors 'none'");
    return buf_take(&out);
}
