/* Where everything of a plot stands. */
#include "plot/plot.h"

#include <math.h>

#include "canvas.h"

#define PANEL_HEIGHT 230.0
#define HEAD         56.0 /* for the title */
#define FOOT         20.0 /* for what x is */
#define LEFT         76.0
#define RIGHT        20.0
#define GAP          34.0 /* between panels */
#define SIZE         12.0 /* of letters */
#define KEY_LINE     16.0 /* a line of the key */
#define KEY_SAMPLE   22.0 /* of each line, in the key */

#define INK   0x1c2128u
#define FAINT 0x57606au
#define GRID  0xd0d7deu

static const uint32_t colours[] = {0x0a6ebd, 0xc4500a, 0x0b7a58, 0xa3308a,
                                   0x7d6200, 0xb3261e, 0x5b4bc4, 0x57606a};

struct scale { /* from values to places */
    double low, high, from, to;
    double tick; /* between values that are named */
};

static double place(const struct scale *s, double value)
{
    return s->from + (value - s->low) / (s->high - s->low) * (s->to - s->from);
}

/* The middle of a unit, where a line of width 1 is sharp. */
static double sharp(double place)
{
    return floor(place) + 0.5;
}

static uint32_t colour_of(size_t line)
{
    return colours[line % ARRAY_LEN(colours)];
}

/* --- scales ---------------------------------------------------------------------------------- */
/* 1, 2 or 5 times a power of ten, so that about `count` of them fit. */
static double choose_tick(double span, double count)
{
    double rough = span / count, power = pow(10, floor(log10(rough)));
    double times = rough / power;
    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

static void widen(struct scale *s, const double *values, size_t count)
{
    for (size_t i = 0; values && i < count; i++) {
        if (!isfinite(values[i]))
            continue;
        s->low = fmin(s->low, values[i]);
        s->high = fmax(s->high, values[i]);
    }
}

static void finish(struct scale *s, double ticks, bool to_ticks)
{
    if (!(s->low <= s->high)) /* nothing is known */
        s->low = 0, s->high = 1;
    if (s->high - s->low < 1e-9 * fmax(1, fabs(s->high)))
        s->low -= 0.5, s->high += 0.5;
    s->tick = choose_tick(s->high - s->low, ticks);
    if (!to_ticks)
        return;
    s->low = floor(s->low / s->tick + 1e-9) * s->tick;
    s->high = ceil(s->high / s->tick - 1e-9) * s->tick;
}

static struct scale scale_x(const struct plot *plot)
{
    struct scale s = {INFINITY, -INFINITY, LEFT, PLOT_WIDTH - RIGHT, 0};
    for (size_t p = 0; p < plot->panel_count; p++)
        for (size_t i = 0; i < plot->panels[p].line_count; i++)
            widen(&s, plot->panels[p].lines[i].x, plot->panels[p].lines[i].count);
    finish(&s, 8, false);
    return s;
}

static struct scale scale_y(const struct plot_panel *panel, double top)
{
    struct scale s = {INFINITY, -INFINITY, top + PANEL_HEIGHT, top, 0};
    for (size_t i = 0; i < panel->line_count; i++) {
        const struct plot_line *l = &panel->lines[i];
        widen(&s, l->y, l->count);
        widen(&s, l->low, l->count);
        widen(&s, l->high, l->count);
    }
    finish(&s, 5, true);
    return s;
}

/* --- axes ------------------------------------------------------------------------------------ */
/* The i-th value that is named; NaN behind the last. */
static double tick_at(const struct scale *s, int i)
{
    double steps = ceil(s->low / s->tick - 1e-9) + i, value = steps * s->tick;
    return value > s->high + 1e-9 * s->tick ? NAN : steps == 0 ? 0 : value; /* not "-0" */
}

static void draw_stretch(struct canvas *c, double x1, double y1, double x2, double y2,
                         uint32_t colour, double width)
{
    const struct canvas_point ends[2] = {{x1, y1}, {x2, y2}};
    c->line(c, ends, 2, &(struct canvas_pen){colour, width, 1});
}

static void draw_words(struct canvas *c, const char *text, double x, double y,
                       enum canvas_anchor anchor, uint32_t colour)
{
    c->text(c, &(struct canvas_text){text, x, y, anchor, SIZE, colour, false, false});
}

static void draw_axes(struct canvas *c, const struct scale *x, const struct scale *y,
                      const char *label)
{
    char text[32];
    double v;
    for (int i = 0; !isnan(v = tick_at(y, i)); i++) {
        double at = sharp(place(y, v));
        snprintf(text, sizeof(text), "%.6g", v);
        draw_stretch(c, x->from, at, x->to, at, GRID, 1);
        draw_words(c, text, x->from - 8, at + 4, CANVAS_END, INK);
    }
    for (int i = 0; !isnan(v = tick_at(x, i)); i++) {
        double at = sharp(place(x, v));
        snprintf(text, sizeof(text), "%.8g", v);
        draw_stretch(c, at, y->from, at, y->from + 5, FAINT, 1);
        draw_words(c, text, at, y->from + 18, CANVAS_MIDDLE, INK);
    }
    draw_stretch(c, sharp(x->from), y->to, sharp(x->from), y->from, FAINT, 1);
    draw_stretch(c, sharp(x->from), sharp(y->from), x->to, sharp(y->from), FAINT, 1);
    c->text(c, &(struct canvas_text){label, 18, (y->from + y->to) / 2, CANVAS_MIDDLE, SIZE, INK,
                                     false, true});
}

/* --- lines ----------------------------------------------------------------------------------- */
struct frame { /* of a panel */
    const struct scale *x, *y;
    struct canvas_point *points; /* room for two of each point of a line */
};

static void draw_band(struct canvas *c, const struct plot_line *l, const struct frame *f,
                      uint32_t colour)
{
    size_t n = 0;
    if (l->low == NULL || l->high == NULL)
        return;
    for (size_t i = 0; i < l->count; i++)
        if (isfinite(l->high[i]))
            f->points[n++] = (struct canvas_point){place(f->x, l->x[i]), place(f->y, l->high[i])};
    for (size_t i = l->count; i-- > 0;)
        if (isfinite(l->low[i]))
            f->points[n++] = (struct canvas_point){place(f->x, l->x[i]), place(f->y, l->low[i])};
    c->area(c, f->points, n, &(struct canvas_pen){colour, 0, 0.18});
}

static void draw_line(struct canvas *c, const struct plot_line *l, const struct frame *f,
                      uint32_t colour)
{
    size_t n = 0;
    for (size_t i = 0; i <= l->count; i++) {
        if (i < l->count && isfinite(l->y[i])) {
            f->points[n++] = (struct canvas_point){place(f->x, l->x[i]), place(f->y, l->y[i])};
        } else if (n > 0) {
            c->line(c, f->points, n, &(struct canvas_pen){colour, 2, 1});
            n = 0;
        }
    }
}

/* --- the key --------------------------------------------------------------------------------- */
struct box {
    double left, top, width, height;
};

/* How much of the lines lies in it, by places along them. */
static size_t count_inside(const struct plot_panel *panel, const struct frame *f,
                           const struct box *box)
{
    enum { PLACES = 16 }; /* of each stretch */
    size_t inside = 0;
    for (size_t i = 0; i < panel->line_count; i++) {
        const struct plot_line *l = &panel->lines[i];
        for (size_t k = 0; k + 1 < l->count; k++)
            for (int p = 0; p < PLACES; p++) {
                double share = p / (double)PLACES;
                double x = place(f->x, l->x[k] + share * (l->x[k + 1] - l->x[k])) - box->left;
                double y = place(f->y, l->y[k] + share * (l->y[k + 1] - l->y[k])) - box->top;
                inside += x > 0 && x < box->width && y > 0 && y < box->height;
            }
    }
    return inside;
}

/* The corner that hides least: upper right, lower right, upper left, lower left. */
static struct box choose_corner(const struct plot_panel *panel, const struct frame *f)
{
    struct box best = {0};
    size_t least = SIZE_MAX;
    double widest = 0;
    for (size_t i = 0; i < panel->line_count; i++)
        widest = fmax(widest, SIZE * font_trace(panel->lines[i].label, NULL, NULL));
    for (int corner = 0; corner < 4; corner++) {
        struct box box = {.width = widest + KEY_SAMPLE + 18,
                          .height = KEY_LINE * (double)panel->line_count + 6};
        box.left = corner < 2 ? f->x->to - box.width - 4 : f->x->from + 6;
        box.top = corner % 2 == 0 ? f->y->to + 4 : f->y->from - box.height - 6;
        size_t inside = count_inside(panel, f, &box);
        if (inside < least) {
            least = inside;
            best = box;
        }
    }
    return best;
}

/* Only where there are several lines to tell apart. */
static void draw_key(struct canvas *c, const struct plot_panel *panel, const struct frame *f)
{
    if (panel->line_count < 2)
        return;
    struct box b = choose_corner(panel, f);
    const struct canvas_point corners[4] = {{b.left, b.top},
                                            {b.left + b.width, b.top},
                                            {b.left + b.width, b.top + b.height},
                                            {b.left, b.top + b.height}};
    c->area(c, corners, 4, &(struct canvas_pen){0xffffff, 0, 0.8});
    for (size_t i = 0; i < panel->line_count; i++) {
        double y = b.top + 3 + KEY_LINE * ((double)i + 0.5);
        draw_stretch(c, b.left + 6, y, b.left + 6 + KEY_SAMPLE, y, colour_of(i), 2);
        draw_words(c, panel->lines[i].label, b.left + 12 + KEY_SAMPLE, y + 4, CANVAS_START, INK);
    }
}

/* --- the whole ------------------------------------------------------------------------------- */
static void draw_panel(struct canvas *c, const struct plot_panel *panel, const struct scale *x,
                       double top)
{
    struct scale y = scale_y(panel, top);
    size_t most = 0;
    for (size_t i = 0; i < panel->line_count; i++)
        most = panel->lines[i].count > most ? panel->lines[i].count : most;
    cleanup_free struct canvas_point *points = xcalloc(2 * most + 1, sizeof(*points));
    const struct frame f = {x, &y, points};
    draw_axes(c, x, &y, panel->y_label);
    for (size_t i = 0; i < panel->line_count; i++)
        draw_band(c, &panel->lines[i], &f, colour_of(i));
    for (size_t i = 0; i < panel->line_count; i++)
        draw_line(c, &panel->lines[i], &f, colour_of(i));
    draw_key(c, panel, &f);
}

double plot_height(const struct plot *plot)
{
    return HEAD + FOOT + (PANEL_HEIGHT + GAP) * (double)plot->panel_count;
}

void plot_draw(const struct plot *plot, struct canvas *c)
{
    struct scale x = scale_x(plot);
    c->text(c, &(struct canvas_text){plot->title, LEFT, 22, CANVAS_START, 16, INK, true, false});
    draw_words(c, plot->subtitle, LEFT, 40, CANVAS_START, FAINT);
    for (size_t i = 0; i < plot->panel_count; i++)
        draw_panel(c, &plot->panels[i], &x, HEAD + (PANEL_HEIGHT + GAP) * (double)i);
    draw_words(c, plot->x_label, (x.from + x.to) / 2, plot_height(plot) - 8, CANVAS_MIDDLE, INK);
}
