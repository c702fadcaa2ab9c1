{{/*
An image's full name, from a list of the root and one of the entries of `images`. `images.registry` stands before a
repository whose first part is no registry: as everywhere, one has a dot, a port, or is localhost.
*/}}
{{- define "argosy.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- $first := first (splitList "/" $image.repository) -}}
{{- $named := and (contains "/" $image.repository) (or (contains "." $first) (contains ":" $first) (eq $first "localhost")) -}}
{{- if and $root.Values.images.registry (not $named) -}}
{{- $root.Values.images.registry }}/
{{- end -}}
{{- $image.repository -}}
{{- if $image.digest -}}
@{{ $image.digest }}
{{- else -}}
:{{ default $root.Chart.AppVersion $image.tag }}
{{- end -}}
{{- end -}}
