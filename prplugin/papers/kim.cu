// Kim 2013 in the paper's form: float32, and a division by the out-degree for each edge. `form="paper"` of `node` and
// `edge`.
//
// Mapping: `node_centric` (Algorithm 3) has one thread per vertex, `initialize` and `edge_centric` (Algorithms 1 and 2)
// one per vertex and per edge, in grid-stride loops. The paper launches 1,000 blocks of 1,000 threads.
// Memory: `node_centric` two offsets per vertex; per edge a position, a gathered rank and a gathered out-degree.
// `edge_centric` per edge two positions, a gathered rank and out-degree, and an atomic addition of a float.
// Wins: never compared with node.cu and edge.cu, which divide once per vertex.
//
// Algorithm 3 takes the out-degree from ptrArray, which is right only for undirected graphs; otherwise it is an array.
//
//   index_t     int, or long long past 2^31 vertices
//   offset_t    int or long long: the type of offsets of rows
//   UNDIRECTED  0 1

// Algorithm 3, "Node-centric PageRank GPU Kernel":
//    1: idx = blockIdx * numThreads + threadIdx;
//    2: while idx < numNodes do
//    3:   sum = 0;
//    4:   for each w, ptrArray[idx] <= w < ptrArray[idx+1] do
//    5:     wID = adjListArray[w];
//    6:     wOutDegree = ptrArray[wID+1] - ptrArray[wID];
//    7:     sum += oldPR[wID] / wOutDegree;
//    9:   newPR[idx] = df * sum + (1 - df) / numNodes;
//   10:   idx += numBlocks * numThreads;
extern "C" __global__ void node_centric(long long numNodes, float df, const offset_t *ptrArray,
                                        const index_t *adjListArray, const int *outDegree, const float *oldPR,
                                        float *newPR) {
    long long idx = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    while (idx < numNodes) {
        float sum = 0;
        for (offset_t w = ptrArray[idx]; w < ptrArray[idx + 1]; ++w) {
            index_t wID = adjListArray[w];
#if UNDIRECTED
            int wOutDegree = ptrArray[wID + 1] - ptrArray[wID];
#else
            int wOutDegree = outDegree[wID];
#endif
            sum += oldPR[wID] / wOutDegree;
        }
        newPR[idx] = df * sum + (1 - df) / numNodes;
        idx += static_cast<long long>(gridDim.x) * blockDim.x;
    }
}

// Algorithm 1, "Edge-centric PageRank GPU Kernel-1":
//   3:   newPR[idx] = minPR;
extern "C" __global__ void initialize(long long numNodes, float minPR, float *newPR) {
    long long idx = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    while (idx < numNodes) {
        newPR[idx] = minPR;
        idx += static_cast<long long>(gridDim.x) * blockDim.x;
    }
}

struct Edge {
    index_t w, v;
};

// Algorithm 2, "Edge-centric PageRank GPU Kernel-2":
//   3:   (w, v) = edgeArray[idx];
//   4:   atomicAdd(newPR[v], df * oldPR[w] / outDegree[w]);
//   5:   // perform the below line only for undirected networks
//   6:   atomicAdd(newPR[w], df * oldPR[v] / outDegree[v]);
// A self-loop of an undirected network counts once here.
extern "C" __global__ void edge_centric(long long numEdges, float df, const int *outDegree, const Edge *edgeArray,
                                        const float *oldPR, float *newPR) {
    long long idx = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    while (idx < numEdges) {
        index_t w = edgeArray[idx].w, v = edgeArray[idx].v;
        atomicAdd(newPR + v, df * oldPR[w] / outDegree[w]);
#if UNDIRECTED
        if (w != v) atomicAdd(newPR + w, df * oldPR[v] / outDegree[v]);
#endif
        idx += static_cast<long long>(gridDim.x) * blockDim.x;
    }
}
