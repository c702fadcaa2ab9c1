"""Where rollouts are: a cluster, by the user's kubeconfig, or an `argosy up`, by its state folder."""
