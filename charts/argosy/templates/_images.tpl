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

{{/*
The image of another target of the bundled server, from a list of the root, the entry of `images` and the target's name.
What the entry leaves out is that of `images.runtime`, with the target as the suffix of the tag.
*/}}
{{- define "argosy.target" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- $runtime := $root.Values.images.runtime -}}
{{- $tag := printf "%s-%s" (default $root.Chart.AppVersion $runtime.tag) (index . 2) -}}
{{- include "argosy.image" (list $root (dict "repository" (default $runtime.repository $image.repository) "tag" (default $tag $image.tag) "digest" $image.digest)) -}}
{{- end -}}
