{{/* What the operator may do in a namespace that it watches. */}}
{{- define "argosy.namespaceRules" -}}
- apiGroups: [argosy.dev]
  resources: [inferencemodels, ensembles, servingpools]
  verbs: [get, list, watch]
- apiGroups: [argosy.dev]
  resources: [inferencemodels/status, ensembles/status, servingpools/status]
  verbs: [patch]
- apiGroups: [apps]
  resources: [deployments, controllerrevisions]
  verbs: [get, list, watch, create, patch, delete]
# Engines are built in Jobs; their Pods are the Jobs' own.
- apiGroups: [batch]
  resources: [jobs]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services, serviceaccounts]
  verbs: [get, list, watch, create, patch, delete]
# The agents' roles give rights to configmaps, `update` among them. Kubernetes lets a subject grant only the rights that
# it has, so the operator has them too; it needs neither `escalate` nor `bind`.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch, update, delete]
- apiGroups: [rbac.authorization.k8s.io]
  resources: [roles, rolebindings]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
# Where the cluster has the Gateway API inference extension: one for each language model.
- apiGroups: [inference.networking.k8s.io]
  resources: [inferencepools]
  verbs: [get, list, watch, create, patch, delete]
# Where the cluster has Dynamic Resource Allocation: by these, servers' Pods have their GPUs.
- apiGroups: [resource.k8s.io]
  resources: [resourceclaimtemplates]
  verbs: [get, list, watch, create, patch, delete]
# Pods are the Deployments' own: the operator labels them and says that they have settled.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, patch]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [""]
  resources: [events]
  verbs: [create, patch]
{{- with .Values.rbac.secretNames }}
# With these the pools' Prometheus servers are asked.
- apiGroups: [""]
  resources: [secrets]
  resourceNames: {{ toJson . }}
  verbs: [get]
{{- end }}
{{- end -}}

{{/* What it reads of the whole cluster, whatever it watches. */}}
{{- define "argosy.clusterRules" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
# Whose Pods hold GPUs of those nodes, wherever they are.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
# Which devices DRA drivers publish, who has them, and which are tainted.
- apiGroups: [resource.k8s.io]
  resources: [resourceslices, resourceclaims, devicetaintrules]
  verbs: [list, watch]
- apiGroups: [apiextensions.k8s.io]
  resources: [customresourcedefinitions]
  verbs: [get, list, watch]
{{- end -}}
