"""PageRank of a graph that is distributed over the workers of a Dask cluster.

Every worker runs the same program on its part of the data, as one rank of the program (as in MPI). It factorizes ids
together with the other ranks and sends each edge to the rank that owns its target (`factorize`, `shard`), and iterates
over the vertices that it owns (`host_step`, `device_step`) in `prplugin.solver.loop`. `ranks` writes the result,
`order` selects and orders vertices over all ranks, and `update` changes edges. Ranks communicate only through a
`Communicator`, over Dask's connections, or its subclass over NCCL between GPUs (`nccl`). The driver (`run`) starts the
program, one task per worker, and monitors it.

This package is imported only when a Dask frame is ranked.
"""
