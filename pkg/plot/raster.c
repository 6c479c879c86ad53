/* A plot in pixels. A shape first says how much of each pixel it covers, then all of it is painted
 * at once: so edges are smooth, and where a line crosses itself it is no darker. */
#include "canvas.h"
#include "plot/plot.h"

#include <math.h>
#include <string.h>

#define PIXELS_PER_UNIT 2.0
#define STEM            0.046 /* half of a letter's stroke, in ems */
#define STEM_BOLD       0.066
#define DOT             1.4 /* of a stroke */

struct part { /* of the picture that a shape touches */
    size_t left, top, right, bottom;
};

/* What is no number becomes low. */
static double clamp(double x, double low, double high)
{
    return x > low ? (x < high ? x : high) : low;
}

static struct part part_around(const struct raster *r, struct canvas_point a, struct canvas_point b,
                               double margin)
{
    double width = (double)r->width, height = (double)r->height;
    return (struct part){(size_t)clamp(floor(fmin(a.x, b.x) - margin), 0, width),
                         (size_t)clamp(floor(fmin(a.y, b.y) - margin), 0, height),
                         (size_t)clamp(ceil(fmax(a.x, b.x) + margin), 0, width),
                         (size_t)clamp(ceil(fmax(a.y, b.y) + margin), 0, height)};
}

static void join(struct part *to, const struct part *more)
{
    to->left = more->left < to->left ? more->left : to->left;
    to->top = more->top < to->top ? more->top : to->top;
    to->right = more->right > to->right ? more->right : to->right;
    to->bottom = more->bottom > to->bottom ? more->bottom : to->bottom;
}

static const struct part nothing = {SIZE_MAX, SIZE_MAX, 0, 0};

/* Paints what is covered, and covers it no more. */
static void paint(struct raster *r, const struct part *part, uint32_t colour, double opacity)
{
    for (size_t y = part->top; y < part->bottom; y++)
        for (size_t x = part->left; x < part->right; x++) {
            float *cover = &r->cover[y * r->width + x];
            uint8_t *pixel = &r->pixels[3 * (y * r->width + x)];
            for (size_t i = 0; i < 3; i++) {
                double wanted = (double)(colour >> (16 - 8 * i) & 0xff);
                pixel[i] = (uint8_t)lround(pixel[i] + (wanted - pixel[i]) * *cover * opacity);
            }
            *cover = 0;
        }
}

/* --- lines ----------------------------------------------------------------------------------- */
/* How far a pixel's middle is from the stretch between two points. */
static double distance(double x, double y, struct canvas_point a, struct canvas_point b)
{
    double dx = b.x - a.x, dy = b.y - a.y, square = dx * dx + dy * dy;
    double t = square > 0 ? clamp(((x - a.x) * dx + (y - a.y) * dy) / square, 0, 1) : 0;
    return hypot(x - a.x - t * dx, y - a.y - t * dy);
}

static void cover_stretch(struct raster *r, struct canvas_point a, struct canvas_point b,
                          double radius, struct part *touched)
{
    struct part part = part_around(r, a, b, radius + 0.5);
    for (size_t y = part.top; y < part.bottom; y++)
        for (size_t x = part.left; x < part.right; x++) {
            float *cover = &r->cover[y * r->width + x];
            double away = distance((double)x + 0.5, (double)y + 0.5, a, b);
            *cover = fmaxf(*cover, (float)clamp(radius + 0.5 - away, 0, 1));
        }
    join(touched, &part);
}

static struct canvas_point in_pixels(const struct raster *r, struct canvas_point p)
{
    return (struct canvas_point){p.x * r->scale, p.y * r->scale};
}

static void draw_line(struct canvas *c, const struct canvas_point *points, size_t count,
                      const struct canvas_pen *pen)
{
    struct raster *r = (struct raster *)c;
    struct part touched = nothing;
    for (size_t i = 0; i < count; i++)
        cover_stretch(r, in_pixels(r, points[i > 0 ? i - 1 : 0]), in_pixels(r, points[i]),
                      pen->width * r->scale / 2, &touched);
    paint(r, &touched, pen->colour, 1);
}

/* --- areas ----------------------------------------------------------------------------------- */
enum { CUTS = 8 }; /* of a row of pixels, each looked at along its upper edge */

/* Right of an edge that goes down is inside, right of one that goes up outside. What changes from a
 * pixel to the next is noted here; add_up makes the cover of it. */
static void cover_edge(struct raster *r, struct canvas_point a, struct canvas_point b)
{
    double down = b.y > a.y ? 1 : -1, height = (double)r->height;
    size_t cut = (size_t)ceil(clamp(fmin(a.y, b.y), 0, height) * CUTS);
    size_t end = (size_t)ceil(clamp(fmax(a.y, b.y), 0, height) * CUTS);
    for (; cut < end; cut++) {
        double y = (double)cut / CUTS;
        double x = clamp(a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x), 0, (double)r->width - 2);
        float *cover = &r->cover[cut / CUTS * r->width + (size_t)x];
        double behind = x - floor(x);
        cover[0] += (float)(down * (1 - behind) / CUTS);
        cover[1] += (float)(down * behind / CUTS);
    }
}

static void add_up(struct raster *r, const struct part *part)
{
    for (size_t y = part->top; y < part->bottom; y++) {
        double sum = 0;
        for (size_t x = part->left; x < part->right; x++) {
            float *cover = &r->cover[y * r->width + x];
            sum += (double)*cover;
            *cover = (float)fmin(fabs(sum), 1);
        }
    }
}

static void draw_area(struct canvas *c, const struct canvas_point *points, size_t count,
                      const struct canvas_pen *pen)
{
    struct raster *r = (struct raster *)c;
    struct part touched = nothing;
    for (size_t i = 0; i < count; i++) {
        struct canvas_point a = in_pixels(r, points[i]);
        struct canvas_point b = in_pixels(r, points[(i + 1) % count]);
        struct part part = part_around(r, a, b, 1);
        cover_edge(r, a, b);
        join(&touched, &part);
    }
    add_up(r, &touched);
    paint(r, &touched, pen->colour, pen->opacity);
}

/* --- text ------------------------------------------------------------------------------------ */
struct writing {
    struct raster *raster;
    const struct canvas_text *text;
    struct canvas_point begin; /* in pixels */
    struct part touched;
};

static struct canvas_point on_page(const struct writing *w, struct canvas_point p)
{
    double em = w->text->size * w->raster->scale, along = p.x * em, up = p.y * em;
    if (w->text->turned)
        return (struct canvas_point){w->begin.x - up, w->begin.y - along};
    return (struct canvas_point){w->begin.x + along, w->begin.y - up};
}

static void draw_stroke(void *arg, const struct canvas_point *points, size_t count)
{
    struct writing *w = arg;
    double stem = (w->text->bold ? STEM_BOLD : STEM) * (count == 1 ? DOT : 1);
    for (size_t i = 0; i < count; i++)
        cover_stretch(w->raster, on_page(w, points[i > 0 ? i - 1 : 0]), on_page(w, points[i]),
                      stem * w->text->size * w->raster->scale, &w->touched);
}

/* Begins at a whole pixel, where stems are sharp. */
static void draw_text(struct canvas *c, const struct canvas_text *text)
{
    struct raster *r = (struct raster *)c;
    struct writing w = {.raster = r, .text = text, .touched = nothing};
    double length = font_trace(text->text, NULL, NULL) * text->size;
    double back = length * (text->anchor == CANVAS_START    ? 0
                            : text->anchor == CANVAS_MIDDLE ? 0.5
                                                            : 1);
    w.begin.x = round((text->x - (text->turned ? 0 : back)) * r->scale);
    w.begin.y = round((text->y + (text->turned ? back : 0)) * r->scale);
    font_trace(text->text, draw_stroke, &w);
    paint(r, &w.touched, text->colour, 1);
}

/* --- the whole ------------------------------------------------------------------------------- */
void raster_init(struct raster *r, double width, double height, double scale)
{
    *r = (struct raster){.canvas = {draw_line, draw_area, draw_text},
                         .width = (size_t)ceil(width * scale),
                         .height = (size_t)ceil(height * scale),
                         .scale = scale};
    r->pixels = xcalloc(r->width * r->height, 3);
    r->cover = xcalloc(r->width * r->height, sizeof(*r->cover));
    memset(r->pixels, 0xff, r->width * r->height * 3);
}

void raster_clear(struct raster *r)
{
    free(r->pixels);
    free(r->cover);
}

void plot_write_png(const struct plot *plot, FILE *out)
{
    struct raster r;
    raster_init(&r, PLOT_WIDTH, plot_height(plot), PIXELS_PER_UNIT);
    plot_draw(plot, &r.canvas);
    png_write(r.pixels, r.width, r.height, out);
    raster_clear(&r);
}
