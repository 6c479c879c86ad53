/* FaaSRM: what is learned chooses among what the safeguard allows.
 *
 *   struct harvest_policy *policy = harvest_policy_new(&rl_score_default, true, n, seed, &err);
 *   … harvest_policy_train(policy, &cluster, &load, outcomes, &err) for each of many workloads …
 *   harvest_policy_run(policy, &cluster, &other, outcomes);
 *
 * A decision has two parts, cores and memory. One network scores the options of both, each from a
 * row of numbers: platform, function, option. */
#ifndef FAASRL_HARVEST_POLICY_H
#define FAASRL_HARVEST_POLICY_H

#include "harvest/harvest.h"
#include "rl/rl.h"

/* -(RFET + wait / max(execution with the user's amounts, 1 s)), at least -10. */
double harvest_reward(const struct harvest_outcome *outcome);

struct harvest_policy;
/* Without a safeguard: any option from a step to the most, from the first invocation on. updates:
 * how many are planned. */
struct harvest_policy *harvest_policy_new(const struct rl_ppo_config *config, bool safeguard,
                                          size_t updates, uint64_t seed, struct error *err);
void harvest_policy_free(struct harvest_policy *policy);
/* An episode: options by chance as the policy has it, then an update. outcomes: (invocations). */
int harvest_policy_train(struct harvest_policy *policy, const struct harvest_cluster *cluster,
                         const struct harvest_workload *load, struct harvest_outcome *outcomes,
                         struct error *err);
/* The likeliest options; learns nothing. */
void harvest_policy_run(const struct harvest_policy *policy, const struct harvest_cluster *cluster,
                        const struct harvest_workload *load, struct harvest_outcome *outcomes);
/* What the safeguard allows, one as likely as the other: what learning has to beat. */
void harvest_chance_run(const struct harvest_cluster *cluster, const struct harvest_workload *load,
                        uint64_t seed, struct harvest_outcome *outcomes);

#endif
