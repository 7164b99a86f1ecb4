# profile of purchases, with `counted` as it is and by __match_any_sync
import sys, time
import numpy as np, cupy, cudf, rmm, torch
rmm.mr.set_current_device_resource(rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), initial_pool_size=20 << 30))
from rmm.allocators.cupy import rmm_cupy_allocator
cupy.cuda.set_allocator(rmm_cupy_allocator)
import prplugin
from torch.profiler import profile, ProfilerActivity
from benchmarks.generate import purchases, rmat, uniform
from prplugin.gpu import runtime
original = runtime.source
OLD = "    if (!__all_sync(0xffffffffu, !valid || bin == first)) return valid ? atomicAdd(counts + bin, 1u) : 0;\n"
NEW = """    if (!__all_sync(0xffffffffu, !valid || bin == first)) {
        unsigned same = __match_any_sync(0xffffffffu, valid ? bin : 0xffffffffu);
        int head = __ffs(same) - 1;
        if (valid && lane == head) before = atomicAdd(counts + bin, static_cast<unsigned>(__popc(same)));
        return __shfl_sync(0xffffffffu, before, head) + __popc(same & ((1u << lane) - 1));
    }
"""
sync = lambda: cupy.cuda.Device().synchronize()
for variant in ("plain", "match"):
    def source(path, variant=variant):
        text = original(path)
        if path.endswith("gpu/blocks.cu") and variant == "match":
            assert OLD in text
            text = text.replace(OLD, NEW)
        return text
    runtime.source = source; runtime._kernels.clear()
    for name, make, how in (("purchases", lambda: purchases(5_000_000, 200_000, 40_000_000, memory_space="device"), {"directed": False}), ("rmat24", lambda: rmat(24, memory_space="device"), {}), ("sorted24", lambda: rmat(24, memory_space="device").sort_values("src"), {})):
        frame = make().astype("int32")
        for _ in range(2): prplugin.pagerank(frame, **how); sync()
        ts = []
        for _ in range(7):
            t = time.perf_counter(); prplugin.pagerank(frame, **how); sync(); ts.append(time.perf_counter() - t)
        with profile(activities=[ProfilerActivity.CUDA]) as p: prplugin.pagerank(frame, **how); sync()
        rows = sorted(((e.self_device_time_total, e.key) for e in p.key_averages()), reverse=True)[:16]
        print(variant, name, f"{min(ts)*1e3:.2f} ms", "  ".join(f"{k[:24]} {t/1e3:.2f}" for t, k in rows if t > 20), flush=True)
        del frame
