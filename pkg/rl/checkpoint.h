/* Checkpoints: what was learned, as a file or as a piece of memory (for a ConfigMap's binaryData).
 *
 * The format is the same on every machine, has a version, and carries its SHA-256; what does not
 * fit is refused with the reason. docs/learning.md describes it byte by byte. */
#ifndef FAASRL_RL_CHECKPOINT_H
#define FAASRL_RL_CHECKPOINT_H

#include "rl/rl.h"

#define RL_CHECKPOINT_VERSION   1
#define RL_CHECKPOINT_MAX_BYTES ((size_t)256 << 20)
#define RL_MAX_NAME             63   /* bytes of a name; printable ones only, as in values */
#define RL_MAX_VALUE            4095 /* bytes of a fact's value */
#define RL_MAX_NAMES            4096
#define RL_MAX_SAVED            1024 /* networks, tables, facts: of each */

struct rl_names {
    char **items;
    size_t count;
};

/* What a policy sees and does: where two differ, one's weights mean nothing to the other. */
struct rl_interface {
    struct rl_names features, globals; /* of an observation; besides, of a central critic's */
    struct rl_names head_names;
    struct rl_heads heads;
};

struct rl_saved_net {
    char *name;
    struct rl_net net;
    struct rl_adam adam; /* count 0: not saved */
};

struct rl_saved_table {
    char *name;
    struct rl_table table;
};

struct rl_fact {
    char *key, *value;
};

struct rl_checkpoint { /* begins as {0} */
    char *algorithm;
    uint64_t steps, episodes, updates;
    struct rl_interface interface;
    struct rl_saved_net *nets;
    struct rl_saved_table *tables;
    struct rl_fact *facts; /* anything else worth knowing */
    size_t net_count, table_count, fact_count;
    char sha256[65]; /* of the content that was read; empty: none was */
};

/* --- content (checkpoint.c) ------------------------------------------------------------------ */
void rl_checkpoint_clear(struct rl_checkpoint *c);
void rl_names_add(struct rl_names *names, const char *name);
void rl_interface_add_head(struct rl_interface *i, const char *name, size_t options);
void rl_interface_clear(struct rl_interface *i);
/* Copies; adam may be NULL. */
void rl_checkpoint_add_net(struct rl_checkpoint *c, const char *name, const struct rl_net *net,
                           const struct rl_adam *adam);
void rl_checkpoint_add_table(struct rl_checkpoint *c, const char *name,
                             const struct rl_table *table);
void rl_checkpoint_set(struct rl_checkpoint *c, const char *key, const char *value);
/* NULL where there is none of the name. */
const struct rl_saved_net *rl_checkpoint_net(const struct rl_checkpoint *c, const char *name);
const struct rl_saved_table *rl_checkpoint_table(const struct rl_checkpoint *c, const char *name);
const char *rl_checkpoint_get(const struct rl_checkpoint *c, const char *key);
/* Fails with the first difference. */
int rl_interface_check(const struct rl_interface *saved, const struct rl_interface *wanted,
                       struct error *err);

int rl_shape_check(const struct rl_shape *saved, const struct rl_shape *wanted, struct error *err);

/* --- bytes (codec.c) ------------------------------------------------------------------------- */
/* free() the result; NULL: something is larger than its bound. */
char *rl_checkpoint_encode(const struct rl_checkpoint *c, size_t *len, struct error *err);
/* Into an empty one, which stays so on failure. */
int rl_checkpoint_decode(struct rl_checkpoint *c, const void *data, size_t len, struct error *err);
int rl_checkpoint_copy(const struct rl_checkpoint *from, struct rl_checkpoint *to,
                       struct error *err); /* likewise */
/* Whoever reads the file meanwhile, or after a crash, finds the old content or the new one. */
int rl_checkpoint_write(const struct rl_checkpoint *c, const char *path, struct error *err);
int rl_checkpoint_read(struct rl_checkpoint *c, const char *path, struct error *err);

/* --- learners (ppo.c, table.c) --------------------------------------------------------------- */
/* Adds the networks actor and critic, or actor/NAME and critic/NAME where there are several
 * learners; and sets updates. */
void rl_ppo_save(const struct rl_ppo *ppo, const char *name, struct rl_checkpoint *to);
/* Goes on from there, with Adam's memory if it was saved. Fails where shapes differ. */
int rl_ppo_load(struct rl_ppo *ppo, const char *name, const struct rl_checkpoint *from,
                struct error *err);
/* The table q or q/NAME. */
void rl_q_save(const struct rl_q *q, const char *name, struct rl_checkpoint *to);
int rl_q_load(struct rl_q *q, const char *name, const struct rl_checkpoint *from,
              struct error *err);

#endif
