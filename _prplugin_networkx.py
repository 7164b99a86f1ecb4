"""Backend information for NetworkX, in a module of its own so that importing NetworkX does not import prplugin."""

__all__ = ["get_info"]


def get_info() -> dict[str, object]:
    """Return the description of the backend that NetworkX's dispatch interface defines."""
    return {
        "backend_name": "prplugin",
        "project": "prplugin",
        "package": "prplugin",
        "short_summary": "PageRank in compiled kernels, on the CPU or an NVIDIA GPU.",
        "functions": {
            "pagerank": {
                "additional_docs": (
                    "Takes the steps that NetworkX takes and stops where NetworkX stops. Negative and infinite weights "
                    "and values, NaN, and `alpha` outside [0, 1) are left to NetworkX."
                ),
                "additional_parameters": {
                    'method : str (default: "auto")': "A method of prplugin by name: `prplugin methods` lists them.",
                    "**method_options": "Options of the method, such as `threads=` of numba.",
                },
            }
        },
    }
