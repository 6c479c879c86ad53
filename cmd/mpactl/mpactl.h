/* The subcommands of mpactl. Each gets its own name as argv[0] and gives back the exit status: 0
 * fine, 1 failure, 2 wrong usage. */
#ifndef FAASRL_MPACTL_H
#define FAASRL_MPACTL_H

#include "base/base.h"

enum { EXIT_FINE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Writes "mpactl: " and the message, which reads "what: why: what to do", to stderr. */
void mpactl_error(const char *fmt, ...) PRINTF_LIKE(1, 2);

/* Called as kubectl-mpa, which makes it kubectl mpa: the commands that ask a cluster. */
int kubectl_mpa(int argc, char **argv);
/* Called as kubectl_complete-mpa, which kubectl asks for words to complete. */
int kubectl_complete(int argc, char **argv);

int cmd_checkpoint(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_convert(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_replay(int argc, char **argv);
int cmd_experiment(int argc, char **argv);
int cmd_policy(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_train(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_validate(int argc, char **argv);

#endif
