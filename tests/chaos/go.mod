module faasrl-mpa/tests/chaos

go 1.24
