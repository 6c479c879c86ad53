"""Other simulators with the same queue as bench_sim_mmc: M/M/4 at 70 %. Prints JSON: name → requests per
second of CPU time, with the mean time in system so that one sees that it is the same queue."""
import json
import random
import time

SERVERS, RATE, MEAN_S = 4, 280.0, 0.010


def simpy_mmc(requests):
    import simpy
    env, draw, times = simpy.Environment(), random.Random(1), []
    servers = simpy.Resource(env, SERVERS)

    def serve(arrived):
        with servers.request() as turn:
            yield turn
            yield env.timeout(draw.expovariate(1 / MEAN_S))
        times.append(env.now - arrived)

    def arrive():
        for _ in range(requests):
            yield env.timeout(draw.expovariate(RATE))
            env.process(serve(env.now))

    env.process(arrive())
    env.run()
    return len(times), sum(times) / len(times)


def ciw_mmc(requests):
    import ciw
    ciw.seed(1)
    network = ciw.create_network(arrival_distributions=[ciw.dists.Exponential(rate=RATE)],
                                 service_distributions=[ciw.dists.Exponential(rate=1 / MEAN_S)],
                                 number_of_servers=[SERVERS])
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(requests)
    times = [r.exit_date - r.arrival_date for r in simulation.get_all_records()]
    return len(times), sum(times) / len(times)


def main():
    figures = {}
    for name, run, requests in (("SimPy", simpy_mmc, 200_000), ("Ciw", ciw_mmc, 40_000)):
        begin = time.process_time()
        done, mean_s = run(requests)
        figures[name] = {"requests_per_s": done / (time.process_time() - begin), "mean_ms": mean_s * 1000}
    print(json.dumps(figures))


main()
