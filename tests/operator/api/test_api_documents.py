"""Files of several documents: their resources, and the problems of what cannot be read."""

from argosy.api import InferenceModel, ServingPool, parse_body, parse_documents

POOL = "apiVersion: argosy.dev/v1alpha1\nkind: ServingPool\nmetadata: {name: %s}\n"


def messages(text: str) -> list[str]:
    return [str(problem) for problem in parse_documents(text, "f.yaml")[1]]


def test_documents_are_read_in_order_and_empty_ones_left_out() -> None:
    resources, problems = parse_documents(f"---\n{POOL % 'one'}---\n---\n{POOL % 'two'}", "f.yaml")
    assert problems == []
    assert [resource.name for resource in resources] == ["one", "two"]


def test_an_empty_text_holds_nothing() -> None:
    assert parse_documents("# only a comment\n", "f.yaml") == ([], [])


def test_lists_are_unfolded() -> None:
    text = (
        "apiVersion: v1\nkind: List\nitems:\n"
        "- {apiVersion: argosy.dev/v1alpha1, kind: ServingPool, metadata: {name: one}}\n"
        "- {apiVersion: argosy.dev/v1alpha1, kind: ServingPool, metadata: {}}\n"
    )
    resources, problems = parse_documents(text, "f.yaml")
    assert [resource.key for resource in resources] == ["default/one"]
    assert [str(problem) for problem in problems] == ["f.yaml: document 1 items[1]: metadata.name: is required"]


def test_broken_yaml_names_its_line() -> None:
    assert messages("a: [1\nb: 2\n") == [
        "f.yaml: line 2: not YAML: while parsing a flow sequence expected ',' or ']', but got ':'"
    ]


def test_what_stood_before_broken_yaml_is_retained() -> None:
    resources, problems = parse_documents(f"{POOL % 'one'}---\na: b: c\n", "f.yaml")
    assert [resource.name for resource in resources] == ["one"]
    assert "line 5: not YAML" in problems[0].message


def test_unsafe_tags_are_refused() -> None:
    assert "could not determine a constructor" in messages("a: !!python/name:os.system x\n")[0]


def test_repeated_keys_are_reported_by_line_and_the_resource_refused() -> None:
    resources, problems = parse_documents(POOL % "one" + "spec:\n  maxServers: 1\n  maxServers: 2\n", "f.yaml")
    assert resources == []
    assert [str(problem) for problem in problems] == [
        "f.yaml: document 1: line 6: key 'maxServers' is given twice; keep one"
    ]


def test_anchors_and_merges_work() -> None:
    text = (
        POOL % "one" + "spec: {storage: &s {secretName: s3}}\n---\n" + POOL % "two" + "spec: {nodeSelector: {a: b}}\n"
    )
    assert parse_documents(text, "f.yaml")[1] == []


def test_merged_keys_are_not_repeated_ones() -> None:
    merged = "metadata:\n  <<: {name: one, namespace: a}\n  name: two\n"
    resources, problems = parse_documents("apiVersion: argosy.dev/v1alpha1\nkind: ServingPool\n" + merged, "f.yaml")
    assert problems == []
    assert resources[0].key == "a/two"


def test_dates_stay_text_and_number_keys_become_text() -> None:
    text = "apiVersion: argosy.dev/v1alpha1\nkind: ServingPool\n"
    text += "metadata: {name: one, creationTimestamp: 2026-01-01T00:00:00Z}\nspec: {nodeSelector: {1: x}}\n"
    pool = parse_documents(text, "f.yaml")[0][0]
    assert isinstance(pool, ServingPool)
    assert pool.metadata.creation_timestamp == "2026-01-01T00:00:00Z"
    assert pool.spec.node_selector == {"1": "x"}


def test_repeated_keys_of_a_list_are_reported_once() -> None:
    item = "{apiVersion: argosy.dev/v1alpha1, kind: ServingPool, metadata: {name: one}}"
    text = f"apiVersion: v1\nkind: List\nkind: List\nitems: [{item}, {item}]\n"
    assert messages(text) == ["f.yaml: document 1: line 3: key 'kind' is given twice; keep one"]


def test_objects_of_other_groups_are_skipped() -> None:
    pod = "{apiVersion: v1, kind: Pod, kind: Pod, metadata: {name: x}}"
    assert parse_documents(f"{pod}\n---\n{{apiVersion: v1, kind: PodList, items: [{pod}]}}\n", "f.yaml") == ([], [])


def test_wrong_kinds_and_versions_are_named() -> None:
    assert messages("apiVersion: argosy.dev/v1\nkind: InferenceModle\nmetadata: {name: x}\n") == [
        "f.yaml: InferenceModle default/x: apiVersion: must be argosy.dev/v1alpha1; found 'argosy.dev/v1'",
        (
            "f.yaml: InferenceModle default/x: kind: 'InferenceModle' is none of Argosy's kinds; "
            "did you mean 'InferenceModel'?"
        ),
    ]
    assert messages("- 1\n") == ["f.yaml: document 1: expected a resource, a map with apiVersion and kind; found [1]"]


def test_names_are_dns_names() -> None:
    for name in ("Upper", "under_score", "-dash", "dot.", "", "a" * 254, "line\n"):
        body = {"apiVersion": "argosy.dev/v1alpha1", "kind": "ServingPool", "metadata": {"name": name}}
        assert [problem.path for problem in parse_body(body)[1]] == ["metadata.name"]


def test_a_body_of_the_api_server_is_read_with_all_its_metadata() -> None:
    body = {
        "apiVersion": "argosy.dev/v1alpha1",
        "kind": "InferenceModel",
        "metadata": {
            "name": "m",
            "namespace": "n",
            "generation": 3,
            "resourceVersion": "12",
            "managedFields": [{"manager": "kubectl"}],
            "selfLink": "/x",
        },
        "spec": {"poolRef": {"name": "p"}, "modelFormat": {"name": "python"}, "version": 1, "storageUri": "file:m"},
        "status": {
            "observedGeneration": 2,
            "conditions": [{"type": "Ready", "status": "True", "reason": "Serving", "message": ""}],
            "somethingNewer": {},
        },
    }
    model, problems = parse_body(body)
    assert problems == []
    assert isinstance(model, InferenceModel)
    assert model.metadata.generation == 3
    assert model.status is not None
    assert model.status.ready


def test_a_copy_with_other_metadata_has_other_names() -> None:
    spec = {"poolRef": {"name": "p"}, "modelFormat": {"name": "python"}, "version": 1, "storageUri": "file:m"}
    body = {"apiVersion": "argosy.dev/v1alpha1", "kind": "InferenceModel", "metadata": {"name": "a"}, "spec": spec}
    model, same = parse_body(body)[0], parse_body(body)[0]
    assert isinstance(model, InferenceModel)
    assert (model.identity, model.pool_key, model.served_name) == ("InferenceModel default/a", "default/p", "a")
    assert model == same
    renamed = model.model_copy(update={"metadata": model.metadata.model_copy(update={"name": "b"})})
    assert (renamed.identity, renamed.key, renamed.name) == ("InferenceModel default/b", "default/b", "b")
    assert renamed.model_dump() == {**model.model_dump(), "metadata": renamed.metadata.model_dump()}
