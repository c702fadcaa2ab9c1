{{/* The chart's name, shortened so that what is put behind it still fits a label. */}}
{{- define "argosy.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{/* The name of the release's objects. */}}
{{- define "argosy.fullname" -}}
{{- $name := include "argosy.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The name of objects that stand in no namespace, or in another's: two releases may be named alike. */}}
{{- define "argosy.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "argosy.fullname" .) -}}
{{- end -}}

{{/* The Service by which the API server reaches the operator, and the Secret of its certificate. */}}
{{- define "argosy.admissionName" -}}
{{- printf "%s-admission" (include "argosy.fullname" .) -}}
{{- end -}}

{{- define "argosy.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "argosy.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The PriorityClass of engine builds: one that the release makes, one that is there, or none. */}}
{{- define "argosy.buildPriorityClass" -}}
{{- with .Values.builds.priorityClass -}}
{{- if .name -}}
{{- .name -}}
{{- else if .create -}}
{{- printf "%s-%s-builds" (include "argosy.fullname" $) $.Release.Namespace -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The PriorityClass of placeholders: one that the release makes, one that is there, or none. */}}
{{- define "argosy.placeholderPriorityClass" -}}
{{- with .Values.placeholders.priorityClass -}}
{{- if .name -}}
{{- .name -}}
{{- else if .create -}}
{{- printf "%s-%s-placeholders" (include "argosy.fullname" $) $.Release.Namespace -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "argosy.selectorLabels" -}}
app.kubernetes.io/name: {{ include "argosy.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/component: operator
{{- end -}}

{{/* Not "managed-by: argosy", nor an argosy.dev label: the operator takes what has them for its own. */}}
{{- define "argosy.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "argosy.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: argosy
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}
