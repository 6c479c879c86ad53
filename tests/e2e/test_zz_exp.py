import sys, time
import test_memory as m
from test_memory import targets
from harness import *
pytestmark = m.pytestmark
def test_exp(targets):
    with Controller("exp", *m.QUICK, f"--namespace={targets}", binary=m.RELEASE) as c:
        for k in range(6):
            m.rounds(targets, 500, begin=1000*k)
            m.wait_until_seen(c, 500*(k+1))
            print(k, c.memory_mib())
