#!/bin/sh
# SPDX-License-Identifier: MIT
# agentbox(1) names every command and every option that the program has.
. "${0%/*}/functions.sh"

pod=$SRC/docs/agentbox.pod
ok 'the manual is well-formed' podchecker "$pod"
run ab help
commands=$(printf '%s\n' "$out" | sed -n 's/^  \([a-z][a-z-]*\)  *[A-Z].*/\1/p')
like "$commands" '^create$' 'help lists the commands'
for command in $commands; do
	like "$(grep -e '^=item' "$pod")" "B<$command>" "agentbox $command is in the manual"
	run ab help "$command"
	# The options in the text of a command, from its =item to the next one.
	text=$(awk -v want="B<$command>" '
		/^=item/ { on = index($0, want) > 0 }
		/^=back/ { on = 0 }
		on' "$pod")
	case $command in
	shell) text=$(awk '/^=item B<exec>/ { on = 1 } /^=item B<list>/ { on = 0 } on' "$pod") ;;
	esac
	common=$(sed -n '/^=head1 OPTIONS OF EVERY COMMAND/,/^=head1 CONF/p' "$pod")
	for option in $(printf '%s\n' "$out" | sed -n 's/^  .\{0,4\}--\([a-z-]*\).*/\1/p'); do
		like "$text $common" "B<--$option>" "agentbox $command --$option is in the manual"
	done
done
done_testing
