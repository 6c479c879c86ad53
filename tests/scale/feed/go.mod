module faasrl-mpa/tests/scale/feed

go 1.24
