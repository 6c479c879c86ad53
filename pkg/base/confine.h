/* Gives up, for the rest of this process and all of its threads, what it has no use for: programs
 * to run, other processes, and every system call but those that the controller makes. Whoever finds
 * a hole in it then finds little behind it. */
#ifndef FAASRL_CONFINE_H
#define FAASRL_CONFINE_H

#include "base/base.h"

/* For good: nothing gives it back. From then on another process or program cannot be begun (an
 * attempt to run a program or to look into another process kills this one), and a system call that
 * is not listed fails with EPERM. Fails with ERROR_UNAVAILABLE, and changes nothing, where the
 * kernel or the machine has no such filter, and in builds with a sanitizer, which need more than
 * this. */
int confine(struct error *err);

#endif
