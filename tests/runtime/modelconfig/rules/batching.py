"""Rules of dynamic batching, its queues, and what a cache does not go with."""

DELAY = "default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 1 }"
BATCHING = {
    "preferred above max": (
        "dynamic_batching { preferred_batch_size: [ 4, 16 ] }",
        "dynamic_batching.preferred_batch_size[1]",
        "dynamic batching preferred size must be <= max batch size for m",
    ),
    "preferred zero": (
        "dynamic_batching { preferred_batch_size: [ 0 ] }",
        "dynamic_batching.preferred_batch_size[0]",
        "dynamic batching preferred size must be positive for m",
    ),
    "default priority": (
        "dynamic_batching { priority_levels: 3 }",
        "dynamic_batching.default_priority_level",
        "default priority level must be in range [1, 3] for m",
    ),
    "priority of a policy": (
        "dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 value {} } }",
        "dynamic_batching.priority_queue_policy[3]",
        "priority queue policy must have priority level in range [1, 2] for m",
    ),
    "ordering and priorities": (
        "dynamic_batching { preserve_ordering: true priority_levels: 2 default_priority_level: 2 }",
        "dynamic_batching.priority_levels",
        "Only one priority level is allowed when 'preserve_ordering' is true for m",
    ),
    "ordering and delay": (
        f"dynamic_batching {{ preserve_ordering: true {DELAY} }}",
        "dynamic_batching.default_queue_policy.timeout_action",
        "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m",
    ),
    "ordering and delay of a level": (
        (
            "dynamic_batching { preserve_ordering: true priority_levels: 1 default_priority_level: 1 "
            "priority_queue_policy { key: 1 value { timeout_action: DELAY default_timeout_microseconds: 9 } } }"
        ),
        "dynamic_batching.priority_queue_policy[1].timeout_action",
        "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m",
    ),
    "strategy without dynamic batching": (
        'parameters { key: "BATCH_STRATEGY" value { string_value: "pairs.py" } }',
        'parameters["BATCH_STRATEGY"]',
        "model 'm', parameter 'BATCH_STRATEGY': only dynamic_batching puts requests together; set that, too",
    ),
    "cache and sequences": (
        "sequence_batching {} response_cache { enable: true }",
        "response_cache.enable",
        (
            "Response Cache does not currently support model m with sequence batching scheduler. "
            "Please disable the response cache."
        ),
    ),
    "cache and decoupled": (
        "model_transaction_policy { decoupled: true } response_cache { enable: true }",
        "response_cache.enable",
        (
            "Response Cache does not currently support model m with 'decoupled' transaction policy. "
            "Please disable the response cache."
        ),
    ),
}
