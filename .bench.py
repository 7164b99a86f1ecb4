import sys, os, time, json
import numpy as np, cupy, cudf, rmm
rmm.mr.set_current_device_resource(rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size=20 << 30))
from rmm.allocators.cupy import rmm_cupy_allocator
cupy.cuda.set_allocator(rmm_cupy_allocator)
import prplugin
from benchmarks.generate import cube, local_web, purchases, rmat, uniform
CASES = {
 "rmat20": (lambda: rmat(20, memory_space="device"), {}), "rmat22": (lambda: rmat(22, memory_space="device"), {}),
 "rmat22i64": (lambda: rmat(22, memory_space="device").astype("int64"), {}),
 "rmat24": (lambda: rmat(24, memory_space="device"), {}), "rmat21x8": (lambda: rmat(21, 8, memory_space="device"), {}),
 "uniform": (lambda: uniform(8_000_000, 80_000_000, memory_space="device"), {}),
 "web": (lambda: local_web(4_000_000, 64_000_000, memory_space="device"), {}),
 "purchases": (lambda: purchases(5_000_000, 200_000, 40_000_000, memory_space="device"), {"directed": False}),
 "cube": (lambda: cube(200, memory_space="device"), {"directed": False}),
}
names = [x for x in sys.argv[1].split(",") if x]; method = sys.argv[2] if len(sys.argv) > 2 else "auto"
if len(sys.argv) > 3 and "old" not in prplugin.__file__:
    from prplugin.gpu import edges; edges.BLOCKED = int(sys.argv[3])
sync = lambda: cupy.cuda.Device().synchronize()
for name in names:
    make, how = CASES[name]; frame = make().astype("int64" if "i64" in name else "int32")
    try:
        for _ in range(2): r = prplugin.pagerank(frame, method=method, **how); sync()
        ts = []
        for _ in range(9):
            t = time.perf_counter(); r = prplugin.pagerank(frame, method=method, **how); sync(); ts.append(time.perf_counter() - t)
        g = prplugin.Graph(frame, **how); q = g.rank(method=method); q = g.rank(method=method); sync(); ps = []
        for _ in range(5):
            t = time.perf_counter(); q = g.rank(method=method); sync(); ps.append(time.perf_counter() - t)
        print(f"{'old' if 'old' in prplugin.__file__ else 'new'} {name:10} {method:8} ms {min(ts)*1e3:8.2f} {np.median(ts)*1e3:8.2f} prepared {min(ps)*1e3:8.2f} {q.method} it {q.iterations} bound {q.error_bound:.3g} sum {float(q.ranks.sum()):.8f} top {float(q.ranks.max()):.9e}", flush=True)
    except Exception as e: print(name, method, repr(e)[:300], flush=True)
    del frame; r = q = g = None
if os.environ.get("PROFILE"):
    import torch
    from torch.profiler import profile, ProfilerActivity
    frame = CASES["rmat24"][0]().astype("int32")
    for _ in range(2): prplugin.pagerank(frame); sync()
    with profile(activities=[ProfilerActivity.CUDA]) as p: prplugin.pagerank(frame); sync()
    print(p.key_averages().table(sort_by="cuda_time_total", row_limit=30, max_name_column_width=60)[-6000:])
