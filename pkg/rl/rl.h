/* Learning: small networks, PPO, and the simpler algorithms beside it.
 *
 * Knows nothing of functions or clusters. What is learned in is a world: rows of numbers, one row
 * per agent, that a step moves on:
 *
 *   struct rl_ppo *ppo = rl_ppo_new(&rl_ppo_default, &world, rl_all_rows, updates, seed, &err);
 *   for (size_t i = 0; i < updates; i++) {
 *       while (!rl_ppo_is_full(ppo)) {
 *           rl_ppo_act(ppo);
 *           world.step(world.self);
 *           rl_ppo_see(ppo);
 *       }
 *       if (rl_ppo_update(ppo, &report, &err) < 0)
 *           …
 *   }
 *
 * An algorithm's memory is its own and there is no global state, so that several may learn in
 * several threads, each with rows of its own. The same seed gives the same weights on the same
 * machine, bit for bit. docs/learning.md tells the formulas; checkpoint.h keeps what was learned.
 */
#ifndef FAASRL_RL_H
#define FAASRL_RL_H

#include "base/base.h"
#include "base/random.h"

#define RL_MAX_HIDDEN   8
#define RL_MAX_WIDTH    4096 /* of a layer */
#define RL_MAX_HEADS    8
#define RL_MAX_OPTIONS  256 /* of all heads together */
#define RL_MAX_FEATURES 32  /* of a table */

/* --- networks (net.c) ------------------------------------------------------------------------ */
enum rl_activation { RL_TANH, RL_RELU };

struct rl_shape {
    size_t inputs, outputs;
    size_t hidden[RL_MAX_HIDDEN];
    size_t hidden_count;
    enum rl_activation activation; /* of hidden layers; the last one has none */
};

struct rl_layer {
    size_t in, out;
    size_t weights, biases; /* where they begin in params: (in, out) and (out) */
};

struct rl_net { /* all parameters in one array, so that optimisers and files are single loops */
    struct rl_shape shape;
    struct rl_layer layers[RL_MAX_HIDDEN + 1];
    size_t layer_count, param_count;
    float *params;
};

size_t rl_shape_size(const struct rl_shape *shape); /* its parameters; 0: it cannot be */
/* Refuses a shape that cannot be; its weights begin as 0. */
int rl_net_make(struct rl_net *net, const struct rl_shape *shape, struct error *err);
/* Orthogonal weights, scaled by last_gain in the last layer, and biases of 0. */
void rl_net_randomise(struct rl_net *net, float last_gain, struct random *random);
void rl_net_clear(struct rl_net *net);

/* One row: out has room for shape.outputs. */
void rl_net_row(const struct rl_net *net, const float *in, float *out);

/* What a batch leaves behind for the way back. Begins as {0}, grows as needed. */
struct rl_work {
    float *memory;
    size_t capacity; /* floats */
    size_t rows;
    const float *inputs;               /* (rows, inputs): the caller's */
    float *outputs[RL_MAX_HIDDEN + 1]; /* (rows, out) of each layer */
    float *deltas[RL_MAX_HIDDEN + 1];  /* derivatives by these */
    float *turned;                     /* a layer's weights, (out, in) */
};
void rl_work_clear(struct rl_work *work);

/* (rows, inputs) → (rows, outputs), which live in work until the next call. in must outlive the way
 * back. */
const float *rl_net_forward(const struct rl_net *net, const float *in, size_t rows,
                            struct rl_work *work);
/* From the derivatives of a loss by the outputs, (rows, outputs), to those by the parameters:
 * gradient (param_count) becomes their sum over the rows. */
void rl_net_backward(const struct rl_net *net, struct rl_work *work, const float *d_outputs,
                     float *gradient);
/* After it, with the same d_outputs: to those by the inputs, d_inputs (rows, inputs). */
void rl_net_input_gradient(const struct rl_net *net, struct rl_work *work, const float *d_outputs,
                           float *d_inputs);

/* --- Adam (adam.c) --------------------------------------------------------------------------- */
struct rl_adam {
    float *mean, *square;
    size_t count;
    uint64_t steps;
};
void rl_adam_init(struct rl_adam *adam, size_t count);
void rl_adam_clear(struct rl_adam *adam);
void rl_adam_step(struct rl_adam *adam, float *params, const float *gradient, double rate);
/* Scales the gradient down to a norm of at most `most` (0: leaves it) and gives back what it was.
 */
double rl_clip_gradient(float *gradient, size_t count, double most);

/* --- choices (choice.c) ---------------------------------------------------------------------- */
struct rl_heads { /* an action is one option of each head */
    size_t count;
    size_t options[RL_MAX_HEADS];
    size_t total; /* options of all heads together: the outputs of an actor */
};
int rl_heads_init(struct rl_heads *heads, const size_t *options, size_t count, struct error *err);

/* How likely each option is: softmax over the legal ones (mask NULL: all are) of each head. A head
 * without a legal option takes its first. */
struct rl_odds {
    double p[RL_MAX_OPTIONS], log_p[RL_MAX_OPTIONS]; /* of what is illegal: 0 and -infinity */
};
void rl_odds(const struct rl_heads *heads, const float *logits, const uint8_t *mask,
             struct rl_odds *odds);
void rl_draw(const struct rl_heads *heads, const struct rl_odds *odds, struct random *random,
             int32_t *action);
double rl_log_p(const struct rl_heads *heads, const struct rl_odds *odds, const int32_t *action);
double rl_entropy(const struct rl_heads *heads, const struct rl_odds *odds); /* of all heads */
/* The likeliest option of each head. */
void rl_best(const struct rl_heads *heads, const float *logits, const uint8_t *mask,
             int32_t *action);
bool rl_is_legal(const struct rl_heads *heads, const uint8_t *mask, const int32_t *action);

/* --- losses of one sample (loss.c) ------------------------------------------------------------
 * d_…: becomes the derivatives by what the network gave, times weight. */
struct rl_policy_sample {
    const uint8_t *mask; /* NULL: all is legal */
    const int32_t *action;
    double old_log_p, advantage;
};
struct rl_policy_loss {
    double loss; /* without the entropy */
    double entropy, kl;
    bool clipped;
};
/* PPO's: -min(ratio · A, clamp(ratio, 1 ± clip) · A) - entropy_weight · entropy. */
struct rl_policy_loss rl_policy_loss(const struct rl_heads *heads, const float *logits,
                                     const struct rl_policy_sample *sample, double clip,
                                     double entropy_weight, double weight, float *d_logits);
/* (value - target)², or, where bound > 0, that of the value held within old ± bound if it is
 * larger. */
double rl_value_loss(double value, double old, double target, double bound, double weight,
                     float *d_value);
/* -log p(action) */
double rl_cross_entropy(const struct rl_heads *heads, const float *logits, const uint8_t *mask,
                        const int32_t *action, double weight, float *d_logits);

/* --- worlds ---------------------------------------------------------------------------------- */
/* Where learning takes place: rows of agents in arrays that never move. */
struct rl_world {
    size_t rows;
    size_t observation_size, global_size; /* floats of a row; globals are for critics only */
    struct rl_heads heads;
    const float *observations, *globals; /* (rows, size) */
    const uint8_t *masks;                /* (rows, heads.total): 1: legal; NULL: all are */
    const uint8_t *present;              /* (rows): 0: nobody is there; NULL: all are */
    const uint8_t *terminated;           /* (rows): after a step, 1: this was the last one */
    const uint8_t *truncated;            /* 1: the same, but it could have gone on; the step after
                                            either begins a new episode and counts for nothing */
    const float *rewards;                /* (rows) */
    int32_t *actions;                    /* (rows, heads.count): set before a step */
    void (*reset)(void *self, uint64_t seed);
    void (*step)(void *self);
    void *self;
};

/* The rows first, first + stride, … of a world: {0, 1}: all, for one shared policy; {i, n}: those
 * of agent i of n. */
struct rl_rows {
    size_t first, stride;
};
extern const struct rl_rows rl_all_rows;

/* --- PPO and REINFORCE (ppo.c) --------------------------------------------------------------- */
struct rl_ppo_config {
    size_t hidden[RL_MAX_HIDDEN];
    size_t hidden_count;
    enum rl_activation activation;
    bool central_critic; /* it sees the globals too (MA-PPO) */
    bool monte_carlo; /* returns are what came until the episode's end, without the critic's word;
                         an episode that the horizon cuts is not learned from (REINFORCE) */
    double actor_rate, critic_rate;
    double rate_end;      /* rates fall evenly to this share of themselves at the last update; 1 */
    double gamma, lambda; /* of discounting, of GAE */
    double clip;
    double value_clip; /* values may change by so much per update; 0: by any amount */
    double entropy, critic_weight;
    double max_gradient; /* norm, of each network; 0: any */
    double stop_kl;      /* an update ends after an epoch with a mean KL above it; 0: never */
    size_t horizon;      /* steps between updates */
    size_t epochs;
    size_t minibatch; /* samples; 0: all */
    bool normalise;   /* advantages, within a minibatch */
};
/* MA-PPO's table 3: 2 × 64 tanh, 3e-4, 0.99, clip 0.2, entropy 0.01, minibatches of 5, 5 epochs. */
extern const struct rl_ppo_config rl_ppo_paper;
/* Ours: the same network, larger batches. */
extern const struct rl_ppo_config rl_ppo_default;
/* REINFORCE with a learned baseline: whole episodes, looked at once. */
extern const struct rl_ppo_config rl_reinforce_default;

struct rl_ppo_report { /* means over an update */
    double policy_loss, value_loss, entropy, kl, clipped;
    size_t samples; /* of all epochs together */
};

struct rl_ppo;
/* updates: how many are planned, for the rates. */
struct rl_ppo *rl_ppo_new(const struct rl_ppo_config *config, const struct rl_world *world,
                          struct rl_rows rows, size_t updates, uint64_t seed, struct error *err);
void rl_ppo_free(struct rl_ppo *ppo);
/* Before a step: chooses the actions of its rows. After it: remembers what came of them. */
void rl_ppo_act(struct rl_ppo *ppo);
void rl_ppo_see(struct rl_ppo *ppo);
bool rl_ppo_is_full(const struct rl_ppo *ppo); /* a horizon is seen: time to update */
/* Fails when a reward, an observation, a loss or a gradient is no number, and says which; all is
 * then as it was before the update. */
int rl_ppo_update(struct rl_ppo *ppo, struct rl_ppo_report *report, struct error *err);
/* To be read, saved, or taught by rl_clone. */
struct rl_net *rl_ppo_actor(struct rl_ppo *ppo);
struct rl_net *rl_ppo_critic(struct rl_ppo *ppo);

/* --- PPO over scores (score.c) ---------------------------------------------------------------
 * For decisions whose options differ in number and kind: one network gives each option a score,
 * from a row of what is known of it, and softmax over the scores of a decision is the policy. The
 * network is the same whatever the number of options. A decision has parts as an action has heads:
 * heads->options[h] rows belong to part h, and one of them is taken. The critic sees a state.
 *
 * What comes of a decision may be known much later, and in any order. Of the config, central_critic
 * and monte_carlo do not matter here, and horizon neither: an update learns from whole episodes. */
extern const struct rl_ppo_config rl_score_default; /* FaaSRM's networks, 32 and 16 tanh */

struct rl_score;
struct rl_score *rl_score_new(const struct rl_ppo_config *config, size_t option_size,
                              size_t state_size, size_t updates, uint64_t seed, struct error *err);
void rl_score_free(struct rl_score *score);
/* Takes an option of each part by chance. rows: (heads->total, option_size); gives back the number
 * of the decision since the last update. */
size_t rl_score_act(struct rl_score *score, const struct rl_heads *heads, const float *rows,
                    const float *state, int32_t *action);
void rl_score_reward(struct rl_score *score, size_t decision, double reward);
void rl_score_end(struct rl_score *score); /* the last decision was the last of an episode */
/* Fails as rl_ppo_update does, also when a decision has no reward yet; forgets the decisions. */
int rl_score_update(struct rl_score *score, struct rl_ppo_report *report, struct error *err);
struct rl_net *rl_score_actor(struct rl_score *score);
struct rl_net *rl_score_critic(struct rl_score *score);
/* The options with the highest scores of a network. */
void rl_score_best(const struct rl_net *actor, const struct rl_heads *heads, const float *rows,
                   struct rl_work *work, int32_t *action);

/* --- logs of decisions (log.c) --------------------------------------------------------------- */
/* What anybody decided in a world, and what came of it: a ring of the last steps. */
struct rl_log;
struct rl_log *rl_log_new(const struct rl_world *world, struct rl_rows rows, size_t steps,
                          struct error *err);
void rl_log_free(struct rl_log *log);
/* Before a step, when world->actions are set; weights: of this log's rows, NULL: 1 each. After it:
 * what came of them. An action that is illegal by its mask does not count. */
void rl_log_act(struct rl_log *log, const float *weights);
void rl_log_see(struct rl_log *log);
size_t rl_log_count(const struct rl_log *log); /* samples to learn from */

/* --- behaviour cloning (clone.c) ------------------------------------------------------------- */
struct rl_clone_config {
    double rate, max_gradient;
    size_t epochs, minibatch;
    uint64_t seed; /* of the order */
};
extern const struct rl_clone_config rl_clone_default;
struct rl_clone_report { /* over the last epoch, before each of its steps */
    double loss;         /* mean cross entropy */
    double agreement;    /* share of samples for which the likeliest action is the logged one */
};
/* Teaches an actor to do as the log did. On failure its weights stay as they were. */
int rl_clone(struct rl_net *actor, const struct rl_log *log, const struct rl_clone_config *config,
             struct rl_clone_report *report, struct error *err);

/* --- Q-learning (table.c) -------------------------------------------------------------------- */
struct rl_table { /* observations, cut into bins, × actions of all heads together */
    struct rl_grid {
        size_t feature_count;
        size_t bins[RL_MAX_FEATURES]; /* of equal width; 1: the feature does not matter */
        float low[RL_MAX_FEATURES], high[RL_MAX_FEATURES]; /* beyond them is the outermost bin */
    } grid;
    size_t states, actions;
    float *values; /* (states, actions) */
};
/* The same bins for every feature. */
void rl_grid_init(struct rl_grid *grid, size_t feature_count, size_t bins, float low, float high);
size_t rl_table_size(const struct rl_grid *grid, const struct rl_heads *heads); /* 0: cannot be */
/* The values begin as 0. */
int rl_table_make(struct rl_table *table, const struct rl_grid *grid, const struct rl_heads *heads,
                  struct error *err);
void rl_table_clear(struct rl_table *table);
/* The best legal action for one row. */
void rl_table_best(const struct rl_table *table, const struct rl_heads *heads,
                   const float *observation, const uint8_t *mask, int32_t *action);

struct rl_q_config {
    double rate, rate_end;       /* of learning */
    double epsilon, epsilon_end; /* share of actions by chance */
    size_t decay_steps;          /* both fall evenly to their ends in so many steps */
    double gamma;
};
extern const struct rl_q_config rl_q_default;

struct rl_q;
struct rl_q *rl_q_new(const struct rl_q_config *config, const struct rl_grid *grid,
                      const struct rl_world *world, struct rl_rows rows, uint64_t seed,
                      struct error *err);
void rl_q_free(struct rl_q *q);
/* As with PPO, but every step is learned from at once. A reward that is no number is an error, and
 * the table stays. */
void rl_q_act(struct rl_q *q);
int rl_q_see(struct rl_q *q, struct error *err);
/* Learns once from all that a log holds, whoever decided it. */
int rl_q_replay(struct rl_q *q, const struct rl_log *log, struct error *err);
struct rl_table *rl_q_table(struct rl_q *q);

#endif
