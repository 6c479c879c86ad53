/* Figures of a training in files that TensorBoard reads, while it learns: one directory per seed.
 *
 *   struct train_events *events = train_events_open("runs/seed-1", &err);
 *   while (…)
 *       train_events_add(events, &report, &err);
 *   train_events_close(events);
 */
#ifndef FAASRL_TRAIN_TENSORBOARD_H
#define FAASRL_TRAIN_TENSORBOARD_H

#include "train/train.h"

struct train_events;
/* A new file in a directory, which is made if it is not there; its parent must be. */
struct train_events *train_events_open(const char *directory, struct error *err);
/* A round's reward, slo_preservation, cpu_utilization and violation_ratio at its number of
 * episodes, and every 0.1 s steps_per_second. Whoever looks at the file finds it there at once. */
int train_events_add(struct train_events *events, const struct train_report *report,
                     struct error *err);
void train_events_close(struct train_events *events); /* NULL: nothing is done */

#endif
