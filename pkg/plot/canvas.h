/* What a plot is drawn on. The layout stands once, in plot.c; svg.c and raster.c each know how to
 * draw its lines, areas and words. Private to pkg/plot. */
#ifndef FAASRL_PLOT_CANVAS_H
#define FAASRL_PLOT_CANVAS_H

#include <stdio.h>

#include "base/base.h"

struct canvas_point { /* from the upper left, in units of SVG: 96 an inch */
    double x, y;
};

struct canvas_pen {
    uint32_t colour; /* 0xrrggbb */
    double width;    /* of lines */
    double opacity;  /* of areas */
};

enum canvas_anchor { CANVAS_START, CANVAS_MIDDLE, CANVAS_END };

struct canvas_text {
    const char *text; /* UTF-8 */
    double x, y;      /* where its baseline begins, is halved or ends */
    enum canvas_anchor anchor;
    double size; /* of an em */
    uint32_t colour;
    bool bold, turned; /* turned: upwards */
};

struct canvas { /* a drawing begins with it */
    void (*line)(struct canvas *c, const struct canvas_point *points, size_t count,
                 const struct canvas_pen *pen);
    void (*area)(struct canvas *c, const struct canvas_point *points, size_t count,
                 const struct canvas_pen *pen);
    void (*text)(struct canvas *c, const struct canvas_text *text);
};

/* --- the layout (plot.c) --------------------------------------------------------------------- */
struct plot;
#define PLOT_WIDTH 760.0
double plot_height(const struct plot *plot);
/* Onto white. */
void plot_draw(const struct plot *plot, struct canvas *canvas);

/* --- letters (font.c) ------------------------------------------------------------------------ */
/* Goes through the strokes of a text, which begins at 0, 0 with y upwards, in ems; draw may be
 * NULL. Gives back how wide it is. */
double font_trace(const char *text,
                  void (*draw)(void *arg, const struct canvas_point *points, size_t count),
                  void *arg);

/* --- pixels (raster.c) ----------------------------------------------------------------------- */
struct raster {
    struct canvas canvas;
    size_t width, height;
    double scale;    /* pixels of a unit */
    uint8_t *pixels; /* (height, width, 3): red, green, blue */
    float *cover;    /* (height, width): how much of each pixel the shape at hand covers; else 0 */
};
/* White. */
void raster_init(struct raster *raster, double width, double height, double scale);
void raster_clear(struct raster *raster);

/* --- PNG (png.c) ----------------------------------------------------------------------------- */
void png_write(const uint8_t *pixels, size_t width, size_t height, FILE *out);

#endif
