"""The command line.

Files, in the order in which data flows:

    main             the entry point: commands, errors -> exit status
    options          options that several commands have
    arguments        sizes and durations
    export_command   export
    batch_command    batch
    axes_command     axes
    commands         check, inspect, explain
    compare_command  compare
    file_commands    bench, fix, freeze
    deploy_command   deploy
    ray_address      --ray
    ray_comparisons  check --ray, export --ray
    reports          --report
    batch_progress   progress of a batch
    output           what goes to stdout, and what to stderr
"""
