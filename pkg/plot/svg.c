/* A plot as SVG. */
#include "canvas.h"
#include "plot/plot.h"

struct svg {
    struct canvas canvas;
    FILE *out;
};

static FILE *out_of(struct canvas *c)
{
    return ((struct svg *)c)->out;
}

static void draw_line(struct canvas *c, const struct canvas_point *points, size_t count,
                      const struct canvas_pen *pen)
{
    FILE *out = out_of(c);
    fprintf(out,
            "<path fill=\"none\" stroke=\"#%06x\" stroke-width=\"%g\" stroke-linecap=\"round\" "
            "stroke-linejoin=\"round\" d=\"",
            pen->colour, pen->width);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%c%.1f %.1f", i == 0 ? 'M' : 'L', points[i].x, points[i].y);
    fputs(count == 1 ? "h0\"/>\n" : "\"/>\n", out); /* one point alone is a dot */
}

static void draw_area(struct canvas *c, const struct canvas_point *points, size_t count,
                      const struct canvas_pen *pen)
{
    FILE *out = out_of(c);
    fprintf(out, "<polygon fill=\"#%06x\" fill-opacity=\"%g\" points=\"", pen->colour,
            pen->opacity);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%.1f,%.1f", i == 0 ? "" : " ", points[i].x, points[i].y);
    fputs("\"/>\n", out);
}

static void draw_text(struct canvas *c, const struct canvas_text *t)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    FILE *out = out_of(c);
    fprintf(out,
            "<text transform=\"translate(%.1f %.1f)%s\" text-anchor=\"%s\" font-size=\"%g\"%s "
            "fill=\"#%06x\">",
            t->x, t->y, t->turned ? " rotate(-90)" : "", anchors[t->anchor], t->size,
            t->bold ? " font-weight=\"bold\"" : "", t->colour);
    for (const char *p = t->text; *p; p++) {
        if (*p == '<' || *p == '>' || *p == '&')
            fprintf(out, "&#%d;", *p);
        else
            fputc(*p, out);
    }
    fputs("</text>\n", out);
}

void plot_write_svg(const struct plot *plot, FILE *out)
{
    struct svg svg = {{draw_line, draw_area, draw_text}, out};
    double width = PLOT_WIDTH, height = plot_height(plot);
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" "
            "height=\"%g\" font-family=\"DejaVu Sans,sans-serif\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            width, height, width, height);
    plot_draw(plot, &svg.canvas);
    fputs("</svg>\n", out);
}
