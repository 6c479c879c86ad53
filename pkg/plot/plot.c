#include "plot/plot.h"

#include <math.h>

#define WIDTH        760.0
#define PANEL_HEIGHT 230.0
#define HEAD         56.0 /* for the title */
#define FOOT         20.0 /* for what x is */
#define LEFT         76.0
#define RIGHT        20.0
#define GAP          26.0 /* between panels */

static const char *const colours[] = {"#0a6ebd", "#c4500a", "#0b7a58", "#a3308a",
                                      "#7d6200", "#b3261e", "#5b4bc4", "#57606a"};

struct scale { /* from values to places */
    double low, high, from, to;
    double tick; /* between values that are named */
};

static double place(const struct scale *s, double value)
{
    return s->from + (value - s->low) / (s->high - s->low) * (s->to - s->from);
}

static void write_text(const char *text, FILE *out)
{
    for (; *text; text++) {
        if (*text == '<' || *text == '>' || *text == '&')
            fprintf(out, "&#%d;", *text);
        else
            fputc(*text, out);
    }
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
    struct scale s = {INFINITY, -INFINITY, LEFT, WIDTH - RIGHT, 0};
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

/* --- what is drawn --------------------------------------------------------------------------- */
/* The i-th value that is named; NaN behind the last. */
static double tick_at(const struct scale *s, int i)
{
    double steps = ceil(s->low / s->tick - 1e-9) + i, value = steps * s->tick;
    return value > s->high + 1e-9 * s->tick ? NAN : steps == 0 ? 0 : value; /* not "-0" */
}

static void draw_axes(const struct scale *x, const struct scale *y, const char *label, FILE *out)
{
    double v;
    for (int i = 0; !isnan(v = tick_at(y, i)); i++)
        fprintf(out,
                "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#d0d7de\"/>"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%.6g</text>\n",
                x->from, place(y, v), x->to, x->from - 8, place(y, v) + 4, v);
    for (int i = 0; !isnan(v = tick_at(x, i)); i++)
        fprintf(out,
                "<path d=\"M%.1f %.1fv5\" stroke=\"#57606a\"/>"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.8g</text>\n",
                place(x, v), y->from, place(x, v), y->from + 18, v);
    fprintf(out,
            "<path d=\"M%.1f %.1fV%.1fH%.1f\" fill=\"none\" stroke=\"#57606a\"/>\n"
            "<text transform=\"translate(18 %.1f) rotate(-90)\" text-anchor=\"middle\">",
            x->from, y->to, y->from, x->to, (y->from + y->to) / 2);
    write_text(label, out);
    fputs("</text>\n", out);
}

static void draw_band(const struct plot_line *l, const struct scale *x, const struct scale *y,
                      const char *colour, FILE *out)
{
    if (l->low == NULL || l->high == NULL)
        return;
    fprintf(out, "<polygon fill=\"%s\" fill-opacity=\"0.18\" points=\"", colour);
    for (size_t i = 0; i < l->count; i++)
        if (isfinite(l->high[i]))
            fprintf(out, "%.1f,%.1f ", place(x, l->x[i]), place(y, l->high[i]));
    for (size_t i = l->count; i-- > 0;)
        if (isfinite(l->low[i]))
            fprintf(out, "%.1f,%.1f ", place(x, l->x[i]), place(y, l->low[i]));
    fputs("\"/>\n", out);
}

static void draw_line(const struct plot_line *l, const struct scale *x, const struct scale *y,
                      const char *colour, FILE *out)
{
    bool pen_down = false;
    fprintf(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"2\" d=\"", colour);
    for (size_t i = 0; i < l->count; i++) {
        bool known = isfinite(l->y[i]);
        if (known)
            fprintf(out, "%c%.1f %.1f", pen_down ? 'L' : 'M', place(x, l->x[i]), place(y, l->y[i]));
        pen_down = known;
    }
    fputs("\"/>\n", out);
}

/* Only where there are several lines to tell apart. */
static void draw_key(const struct plot_panel *panel, double top, FILE *out)
{
    for (size_t i = 0; panel->line_count > 1 && i < panel->line_count; i++) {
        double y = top + 12 + 16 * (double)i;
        fprintf(out,
                "<path d=\"M%.1f %.1fh20\" stroke=\"%s\" stroke-width=\"2\"/>"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">",
                WIDTH - RIGHT - 24, y, colours[i % ARRAY_LEN(colours)], WIDTH - RIGHT - 30, y + 4);
        write_text(panel->lines[i].label, out);
        fputs("</text>\n", out);
    }
}

static void draw_panel(const struct plot_panel *panel, const struct scale *x, double top, FILE *out)
{
    struct scale y = scale_y(panel, top);
    draw_axes(x, &y, panel->y_label, out);
    for (size_t i = 0; i < panel->line_count; i++)
        draw_band(&panel->lines[i], x, &y, colours[i % ARRAY_LEN(colours)], out);
    for (size_t i = 0; i < panel->line_count; i++)
        draw_line(&panel->lines[i], x, &y, colours[i % ARRAY_LEN(colours)], out);
    draw_key(panel, top, out);
}

void plot_write_svg(const struct plot *plot, FILE *out)
{
    double height = HEAD + FOOT + (PANEL_HEIGHT + GAP) * (double)plot->panel_count;
    struct scale x = scale_x(plot);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" "
            "height=\"%g\" font-family=\"DejaVu Sans,sans-serif\" font-size=\"12\" "
            "fill=\"#1c2128\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
            "<text x=\"%g\" y=\"22\" font-size=\"16\" font-weight=\"bold\">",
            WIDTH, height, WIDTH, height, LEFT);
    write_text(plot->title, out);
    fprintf(out, "</text>\n<text x=\"%g\" y=\"40\" fill=\"#57606a\">", LEFT);
    write_text(plot->subtitle, out);
    fputs("</text>\n", out);
    for (size_t i = 0; i < plot->panel_count; i++)
        draw_panel(&plot->panels[i], &x, HEAD + (PANEL_HEIGHT + GAP) * (double)i, out);
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", (x.from + x.to) / 2,
            height - 8);
    write_text(plot->x_label, out);
    fputs("</text>\n</svg>\n", out);
}
