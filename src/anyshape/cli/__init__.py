"""The command line.

Files, in the order in which data flows:

    main            the entry point: commands, errors -> exit status
    options         options and arguments that several commands have; stdout and stderr
    export_command  export
    batch_command   batch, and its progress
    commands        axes, check, inspect, explain
    file_commands   compare, bench, fix, freeze, deploy
    late_options    --report, and --ray of check and export
"""
