#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# The house rules that a machine can check: lint.pl RULE DIR prints FILE:LINE: TEXT for each
# breach and exits with 1 when there was one.  See CONTRIBUTING.md for what the rules are for.
use strict;
use warnings;
use File::Find;

my ($rule, $root) = @ARGV;
my $breaches = 0;

sub breach {
	my ($file, $line, $text) = @_;
	print "$file:$line: $text\n";
	$breaches++;
}

# Every file below the folders that people write in, as paths relative to the root.
sub files {
	my ($pattern) = @_;
	my @found;
	find({ no_chdir => 1, wanted => sub {
		my $path = substr($File::Find::name, length($root) + 1);
		if (-d && /\/(?:autom4te\.cache|build-aux|build|\.git|\.libs|\.deps)$/) {
			$File::Find::prune = 1;
			return;
		}
		# libtoolize put these here.
		return if $path =~ /^m4\/l(?:ibtool|t.*)\.m4$/;
		push @found, $path if -f && !-l && $path =~ $pattern;
	} }, grep { -d } map { "$root/$_" } qw(core sdk providers tests scripts docs m4 .ci));
	push @found, grep { -f "$root/$_" && $_ =~ $pattern }
		qw(configure.ac Makefile.am README.md CONTRIBUTING.md NEWS SECURITY.md);
	return sort @found;
}

sub content {
	my ($path) = @_;
	open my $in, '<', "$root/$path" or die "$path: $!\n";
	local $/;
	my $text = <$in> // '';
	close $in;
	return $text;
}

my $block = qr{/\*.*?\*/}s;
my $string = qr/(?:[^"\\\n]|\\.)*/s;
my $char = qr/'(?:[^'\\\n]|\\.)*'/s;

# C code alone: comments and the insides of strings become blanks, lines stay where they are.
sub code_lines {
	my ($text) = @_;
	my $blank = sub { my ($s) = @_; $s =~ s/[^\n]/ /g; return $s; };
	$text =~ s{($block|//[^\n]*)|"($string)"|$char}
		{ defined $1 ? $blank->($1) : defined $2 ? '"' . $blank->($2) . '"' : "' '" }gse;
	return split /\n/, $text, -1;
}

sub match_code {
	my ($path, $regex, $text) = @_;
	my $n = 0;
	for my $line (code_lines(content($path))) {
		$n++;
		breach($path, $n, "$text: $1") while $line =~ /$regex/g;
	}
}

my $source = qr/\.[ch]$/;
my $script = qr/\.(?:sh|pl)$|^\.ci\/run$|wrapper\.in$/;

my %rules = (
	spdx => sub {
		my $id = 'SPDX-License-Identifier: MIT';
		for my $path (files(qr/\.(?:c|h|am|ac|m4)$|$script/)) {
			my ($first, $second) = split /\n/, content($path);
			my $line = ($first // '') =~ /^#!/ ? $second : $first;
			breach($path, 1, "no $id") if index($line // '', $id) < 0;
			next if $path !~ $source;
			breach($path, 1, 'the first line is not the licence alone')
				if $first ne "/* $id */";
		}
	},
	banned => sub {
		my $everywhere = 'strcpy|strcat|strncpy|strncat|stpcpy|sprintf|vsprintf' .
			'|strtok|gets|atoi|atol|atoll|atof|sscanf|alloca|system|popen|tmpnam' .
			'|tempnam|mktemp' .
			'|gmtime|localtime|ctime|asctime|signal|rand|srand';
		for my $path (files($source)) {
			match_code($path, qr/(?<![\w.>])($everywhere)\s*\(/, 'banned function');
			next if $path !~ /^core\// || $path eq 'core/util/parse.c';
			match_code($path, qr/(?<![\w.>])(strto(?:l|ul|ll|ull|imax|umax|d))\s*\(/,
				'use core/util/parse.h instead of');
		}
	},
	'no-fork' => sub {
		match_code($_, qr/(?<![\w.>])(fork|vfork)\s*\(/, 'use abxsdk/spawn.h instead of')
			for files(qr/^(?:core|sdk\/abxsdk)\/.*$source/);
	},
	'function-length' => sub {
		for my $path (files($source)) {
			my ($n, $start) = (0, 0);
			for my $line (code_lines(content($path))) {
				$n++;
				$start = $n if $line =~ /^\{\s*$/;
				next if $line !~ /^\}/ || !$start;
				my $length = $n - $start - 1;
				breach($path, $start, "a function of $length lines (100 at most)")
					if $length > 100;
				$start = 0;
			}
		}
	},
	'file-length' => sub {
		for my $path (files(qr/$source|$script/)) {
			my $n = () = content($path) =~ /\n/g;
			breach($path, $n, "a file of $n lines (700 at most)") if $n > 700;
		}
	},
	'line-length' => sub {
		for my $path (files(qr/\.(?:c|h|sh|pl)$/)) {
			my $n = 0;
			for my $line (split /\n/, content($path)) {
				$n++;
				my $tab = qr/^(.*?)\t/;
				1 while $line =~ s/$tab/$1 . ' ' x (8 - length($1) % 8)/e;
				breach($path, $n, 'longer than 100 columns') if length $line > 100;
			}
		}
	},
	comments => sub {
		for my $path (files($source)) {
			my $text = content($path);
			# What is no // once strings and block comments are gone is not one.
			my $blank = sub { my ($s) = @_; $s =~ s/[^\n]//g; return $s; };
			$text =~ s{$block|"$string"|$char}{$blank->($&)}gse;
			my $n = 0;
			for my $line (split /\n/, $text) {
				$n++;
				breach($path, $n, 'a // comment') if $line =~ m{//};
			}
		}
	},
	words => sub {
		my $home = qr{((?<![\w/])/(?:home|Users)/(?!vscode\b|user\b)\w+)};
		for my $path (files(qr/./)) {
			next if $path eq 'tests/cli/lint.pl';
			next if $path =~ /\.(?:log|trs|[oa]|l[oa])$/;
			my $n = 0;
			for my $line (split /\n/, content($path)) {
				$n++;
				breach($path, $n, "not finished: $1")
					if $line =~ /\b(TODO|FIXME|XXX)\b/;
				breach($path, $n, "a path of one machine: $1")
					if $line =~ $home;
			}
		}
	},
	sleep => sub {
		match_code($_, qr/\b(usleep|sleep|nanosleep|clock_nanosleep)\s*\(/, 'a fixed sleep')
			for files(qr/^tests\/(?!bench\/|mock\/).*$source/);
		# A sleep that a box runs, or one to be killed, is not waiting.
		my $waits = qr/^\s*(?:(?:then|do|else)\s+)?u?sleep\s+[\d.]+\s*(?:;|$)/;
		for my $path (files(qr/^tests\/.*\.sh$/)) {
			next if $path eq 'tests/contract/tap.sh';
			my $n = 0;
			for my $line (split /\n/, content($path)) {
				$n++;
				breach($path, $n, 'a fixed sleep: use wait_for')
					if $line =~ $waits;
			}
		}
	},
	arrows => \&arrows,
);

# Which folder may include which (docs/architecture.md).
sub arrows {
	my @base = qw(sdk core/util);
	my @state = (@base, 'core/state');
	# The wire format of agentbox-ctl is written down where it ends.
	my @host = (@state, qw(core/host core/ctl));
	my @parts = map { "core/$_" } qw(seed agent base checkpoint);
	my @box = (@host, @parts, 'core/box');
	my @top = (@box, 'core/run', 'core/relay');
	my %may = (
		'sdk' => [], 'sdk/provider-check' => \@host,
		'core/util' => ['sdk'], 'core/state' => \@base,
		'core/host' => [@state, 'core/ctl'], (map { $_ => \@host } @parts),
		'core/box' => [@host, @parts], 'core/run' => \@box, 'core/relay' => \@box,
		'core/cli' => \@top, 'core/ctl' => \@base,
	);
	for my $path (files(qr/^(?:core|sdk|providers)\/.*$source/)) {
		my $folder_of = qr{^(sdk/provider-check|sdk|core/\w+|providers/[\w-]+)/};
		my ($from) = $path =~ $folder_of or next;
		my %ok = map { $_ => 1 } $from, @{ $may{$from} // ['sdk'] };
		my $n = 0;
		for my $line (split /\n/, content($path)) {
			$n++;
			next if $line !~ /^\s*#\s*include\s*["<]([^">]+)[">]/;
			my $name = $1;
			my $to = $name =~ m{^(sdk/provider-check|core/\w+|providers/[\w-]+)/} ? $1
				: $name =~ m{^(?:abxsdk|agentbox)/} ? 'sdk'
				: $line =~ /"/ && $name ne 'config.h' ? $from : next;
			breach($path, $n, "$from includes $name") if !$ok{$to};
			(my $folder = $path) =~ s{/[^/]*$}{};
			breach($path, $n, "$name is not in $folder: name it from the top")
				if $line =~ /"/ && $to eq $from && $name !~ m{/} &&
				!-e "$root/$folder/$name";
		}
	}
}

if (!defined $root || !$rules{$rule}) {
	print STDERR 'usage: lint.pl ', join('|', sort keys %rules), " DIR\n";
	exit 2;
}
$rules{$rule}->();
exit($breaches ? 1 : 0);
