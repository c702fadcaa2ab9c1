"""Rollouts in planning: which spec of a model or an ensemble is served, and what of the other one is served with it.

The machine (`argosy.rollout`) knows revisions, and no specs. Around it:

revision.py   the revision of a spec: a hash of what answers its requests, and the version. The fields that are not part
              of it (replicas, scaling, batching, …) always are the declared ones, whichever revision is served.
member_revisions.py
              `MemberRevisions`: the revisions of a model, or of an ensemble, that a round knows, with their specs.
ensembles.py  those of an ensemble: the versions of its steps, and the numbers of its revisions.
memory.py     what a round knows from before: the result of the last round, and of the analysis since.
member.py     `MemberRollout`: the stable spec and the candidate's, and the machine's action. Packing, migration,
              rendering and statuses read it.
facts.py      what servers report of a candidate: ready, failed by its own fault, or kept from loading.
requests.py   what annotations of a resource ask for: promote, retry, undo, pause.
strategy.py   how a candidate replaces the stable revision, by what is free; `shares.py`: by how many replicas.
unraised.py   revisions that cannot be loaded next to the one that serves.
rounds/       one round: the machine is asked for each member, and the specs to act upon replace the declared ones.

Until its candidate is promoted, a member is planned with its stable spec: a new server, a restarted one and an ensemble
that runs the model all get the stable version, and the candidate in addition (`migration/versions.py`). Both are in one
folder of the server's repository, and the parameter `version_traffic` of its configuration divides the requests
(`render/config/traffic_config.py`). It is rendered in each round and is in no key, so that other weights are no reload.

A member whose `spec.rollout` asks for neither steps, nor shadow, nor analysis is not in here: its new version takes all
traffic once it is loaded.
"""
