#include <ctype.h>
#include <string.h>

#include "functions.h"

enum block { NONE, PARAGRAPH, BULLETS, NUMBERS, QUOTE, CODE };

static const struct {
    const char *open;
    const char *close;
} block_tags[] = {
    [NONE] = {"", ""},
    [PARAGRAPH] = {"<p>", "</p>\n"},
    [BULLETS] = {"<ul>\n", "</ul>\n"},
    [NUMBERS] = {"<ol>\n", "</ol>\n"},
    [QUOTE] = {"<blockquote>", "</blockquote>\n"},
    [CODE] = {"<pre><code>", "</code></pre>\n"},
};

struct span {
    const char *start;
    const char *end;
};

struct writer {
    char *html;
    size_t capacity;
    size_t length;
    enum block block;
};

static void put_char(struct writer *w, char c)
{
    if (w->length + 1 < w->capacity)
        w->html[w->length] = c;
    w->length++;
}

static void put(struct writer *w, const char *html)
{
    while (*html != '\0')
        put_char(w, *html++);
}

static void put_escaped(struct writer *w, struct span text)
{
    for (const char *p = text.start; p < text.end; p++) {
        switch (*p) {
        case '&':
            put(w, "&amp;");
            break;
        case '<':
            put(w, "&lt;");
            break;
        case '>':
            put(w, "&gt;");
            break;
        case '"':
            put(w, "&quot;");
            break;
        default:
            put_char(w, *p);
        }
    }
}

static int starts_with(struct span text, const char *prefix)
{
    size_t length = strlen(prefix);
    return (size_t)(text.end - text.start) >= length && memcmp(text.start, prefix, length) == 0;
}

static const char *find(struct span text, const char *what)
{
    return memmem(text.start, (size_t)(text.end - text.start), what, strlen(what));
}

static void put_inline(struct writer *w, struct span text);

/* Each of these returns where the construct ends, or NULL if there is none at text.start. */

static const char *put_marked(struct writer *w, struct span text, const char *mark,
                              const char *open, const char *close)
{
    if (!starts_with(text, mark))
        return NULL;
    struct span inner = {text.start + strlen(mark), text.end};
    inner.end = find(inner, mark);
    if (inner.end == NULL || inner.end == inner.start)
        return NULL;

    put(w, open);
    if (*mark == '`')
        put_escaped(w, inner);
    else
        put_inline(w, inner);
    put(w, close);
    return inner.end + strlen(mark);
}

static const char *put_link(struct writer *w, struct span text)
{
    if (!starts_with(text, "["))
        return NULL;
    struct span label = {text.start + 1, find(text, "](")};
    if (label.end == NULL)
        return NULL;
    struct span address = {label.end + 2, text.end};
    address.end = find(address, ")");
    if (address.end == NULL)
        return NULL;

    put(w, "<a href=\"");
    put_escaped(w, address);
    put(w, "\">");
    put_inline(w, label);
    put(w, "</a>");
    return address.end + 1;
}

static void put_inline(struct writer *w, struct span text)
{
    while (text.start < text.end) {
        const char *next = put_marked(w, text, "`", "<code>", "</code>");
        if (next == NULL)
            next = put_marked(w, text, "**", "<strong>", "</strong>");
        if (next == NULL)
            next = put_marked(w, text, "*", "<em>", "</em>");
        if (next == NULL)
            next = put_link(w, text);
        if (next == NULL) {
            next = text.start + 1;
            put_escaped(w, (struct span){text.start, next});
        }
        text.start = next;
    }
}

static void enter_block(struct writer *w, enum block block)
{
    if (w->block == block)
        return;
    put(w, block_tags[w->block].close);
    put(w, block_tags[block].open);
    w->block = block;
}

static void put_element(struct writer *w, const char *open, struct span text, const char *close)
{
    put(w, open);
    put_inline(w, text);
    put(w, close);
}

static int put_heading(struct writer *w, struct span line)
{
    int level = 0;
    while (level < 6 && line.start + level < line.end && line.start[level] == '#')
        level++;
    if (level == 0 || line.start + level >= line.end || line.start[level] != ' ')
        return 0;

    char open[] = "<h0>", close[] = "</h0>\n";
    open[2] = close[3] = (char)('0' + level);
    enter_block(w, NONE);
    put_element(w, open, (struct span){line.start + level + 1, line.end}, close);
    return 1;
}

static int put_item(struct writer *w, struct span line)
{
    const char *digits = line.start;
    while (digits < line.end && isdigit((unsigned char)*digits))
        digits++;

    struct span rest = {digits, line.end};
    if (digits > line.start && starts_with(rest, ". "))
        enter_block(w, NUMBERS);
    else if (digits == line.start && (starts_with(rest, "- ") || starts_with(rest, "* ")))
        enter_block(w, BULLETS);
    else
        return 0;
    put_element(w, "<li>", (struct span){rest.start + 2, rest.end}, "</li>\n");
    return 1;
}

static void put_text(struct writer *w, struct span line)
{
    enum block block = PARAGRAPH;
    if (starts_with(line, "> ")) {
        block = QUOTE;
        line.start += 2;
    }
    if (w->block == block)
        put_char(w, '\n');
    enter_block(w, block);
    put_inline(w, line);
}

static void put_code_line(struct writer *w, struct span line)
{
    if (starts_with(line, "```")) {
        enter_block(w, NONE);
        return;
    }
    put_escaped(w, line);
    put_char(w, '\n');
}

static void put_line(struct writer *w, struct span line)
{
    if (w->block == CODE) {
        put_code_line(w, line);
    } else if (starts_with(line, "```")) {
        enter_block(w, CODE);
    } else if (line.start == line.end) {
        enter_block(w, NONE);
    } else if (starts_with(line, "---") && line.end - line.start == 3) {
        enter_block(w, NONE);
        put(w, "<hr>\n");
    } else if (!put_heading(w, line) && !put_item(w, line)) {
        put_text(w, line);
    }
}

size_t markdown_to_html(const char *markdown, char *html, size_t capacity)
{
    struct writer w = {.html = html, .capacity = capacity, .block = NONE};

    while (*markdown != '\0') {
        struct span line = {markdown, markdown + strcspn(markdown, "\n")};
        put_line(&w, line);
        markdown = line.end + (*line.end == '\n');
    }
    enter_block(&w, NONE);
    if (capacity > 0)
        html[w.length < capacity ? w.length : capacity - 1] = '\0';
    return w.length;
}
