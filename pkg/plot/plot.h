/* Lines over a number, one panel above the other, as an image that needs nothing else. */
#ifndef FAASRL_PLOT_H
#define FAASRL_PLOT_H

#include <stdio.h>

#include "base/base.h"

struct plot_line {
    const char *label;
    const double *x, *y;      /* of count points; where one is no number the line has a gap */
    const double *low, *high; /* a band around it; NULL: none */
    size_t count;
};

struct plot_panel {
    const char *y_label;
    const struct plot_line *lines;
    size_t line_count;
};

struct plot {
    const char *title, *subtitle, *x_label;
    const struct plot_panel *panels;
    size_t panel_count;
};

void plot_write_svg(const struct plot *plot, FILE *out);
/* The same picture in pixels, two for each unit of the SVG. */
void plot_write_png(const struct plot *plot, FILE *out);

#endif
