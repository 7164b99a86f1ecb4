"""PageRank of a graph that is distributed over the workers of a Dask cluster.

Every worker runs the same program on its part, as one rank: it factorizes ids with the others (`numbering`), sends each
edge to the rank that owns its target (`shard`), and iterates over the rows that it owns (`host_step`, `device_step`) in
`prplugin.solver.loop`. Ranks communicate through a `Communicator` alone: Dask's own connections (`mailbox`), or NCCL
between GPUs (`nccl`). `run` starts the program, one task per worker, and watches it.

Nothing here is imported before there is a frame of Dask.
"""
