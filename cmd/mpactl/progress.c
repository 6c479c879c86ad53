#include "progress.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BAR_WIDTH   30
#define REDRAW_MS   200
#define PATIENCE_MS 1000 /* what is done sooner needs no bar */

struct progress {
    const char *what;
    size_t done, total;
    int64_t begun_ms, drawn_ms; /* drawn_ms 0: not yet */
    bool visible;
    char note[80];
    pthread_mutex_t lock;
};

struct progress *progress_begin(const char *what, size_t total)
{
    struct progress *p = xcalloc(1, sizeof(*p));
    p->what = what;
    p->total = total > 0 ? total : 1;
    p->begun_ms = clock_mono_ms();
    p->visible = isatty(STDERR_FILENO) == 1;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

/* "1h02m", "3m05s" or "12s". */
static const char *print_time(double seconds, char text[16])
{
    int s = seconds < 359999 ? (int)(seconds + 0.5) : 359999;
    if (s >= 3600)
        snprintf(text, 16, "%dh%02dm", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf(text, 16, "%dm%02ds", s / 60, s % 60);
    else
        snprintf(text, 16, "%ds", s);
    return text;
}

static void draw(struct progress *p, int64_t now_ms)
{
    char bar[BAR_WIDTH + 1], left[16];
    double share = (double)p->done / (double)p->total;
    double took_s = (double)(now_ms - p->begun_ms) / 1000;
    size_t filled = (size_t)(share * BAR_WIDTH);
    filled = filled < BAR_WIDTH ? filled : BAR_WIDTH;
    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', filled);
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r%s [%s] %3.0f%% %zu of %zu, %s left%s%s\033[K", p->what, bar, 100 * share,
            p->done, p->total, print_time(took_s * (1 / share - 1), left), p->note[0] ? ", " : "",
            p->note);
    fflush(stderr);
    p->drawn_ms = now_ms;
}

void progress_add(struct progress *progress, size_t n)
{
    pthread_mutex_lock(&progress->lock);
    progress->done += n;
    int64_t now_ms = clock_mono_ms();
    bool due =
        now_ms - progress->begun_ms >= PATIENCE_MS && now_ms - progress->drawn_ms >= REDRAW_MS;
    if (progress->visible && progress->done > 0 && due)
        draw(progress, now_ms);
    pthread_mutex_unlock(&progress->lock);
}

void progress_note(struct progress *progress, const char *fmt, ...)
{
    va_list args;
    pthread_mutex_lock(&progress->lock);
    va_start(args, fmt);
    vsnprintf(progress->note, sizeof(progress->note), fmt, args);
    va_end(args);
    pthread_mutex_unlock(&progress->lock);
}

void progress_end(struct progress *progress)
{
    if (progress->drawn_ms > 0)
        fputs("\r\033[K", stderr);
    pthread_mutex_destroy(&progress->lock);
    free(progress);
}
