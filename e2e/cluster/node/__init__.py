"""The one real node that a machine can have.

What may live here: kubelet, kube-proxy and containerd, the image that containerd holds pods with, the pods' network,
and the removal of every trace of them. It may use the control plane, which knows nothing of it.
"""
