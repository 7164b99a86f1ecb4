"""Ranks of a graph whose edges lie on several workers of a Dask cluster.

Every worker runs the same program (`program`) on its part, a rank: it numbers vertices with the others (`numbering`),
sends each edge to the rank that owns its target (`shard`), and iterates over the rows that it owns (`host_step`,
`device_step`) in `prplugin.solver.loop`. Ranks reach one another through a `Communicator` alone: Dask's own
connections (`mailbox`), or NCCL between GPUs (`nccl`). `run` starts the program, one task a worker, and watches it.

Nothing here is imported before there is a frame of Dask.
"""
