#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# What a request to a Docker engine is called by docker-break.pl, and what the provider asks for.
#
#	docker-kinds.pl FILE.c...     the kinds of all requests that these sources make, a line each
#
# A path is a literal that begins with one of the API's nouns; its method is the one that was named
# last before it.  Where the end of a path is a function's argument, the words that the file calls
# that function with are its ends.
use strict;
use warnings;

sub kind_of
{
	my ($method, $path) = @_;
	$path =~ s{^/v1\.[0-9]+}{};
	my ($p, $query) = split /\?/, $path;
	return 'ping' if $p eq '/_ping';
	return $1 if $p =~ m{^/(info|version|events|commit|build)$};
	return 'list' if $p eq '/containers/json';
	return 'create' if $p eq '/containers/create';
	return 'exec-create' if $p =~ m{^/containers/[^/]+/exec$};
	return "exec-$1" if $p =~ m{^/exec/[^/]+/(start|json|resize)$};
	return "archive-\L$method" if $p =~ m{^/containers/[^/]+/archive$};
	return $1 eq 'json' ? 'inspect' : $1 if $p =~ m{^/containers/[^/]+/([a-z]+)$};
	return 'delete' if $p =~ m{^/containers/[^/]+$};
	return 'image-list' if $p eq '/images/json';
	return ($query // '') =~ /fromImage=/ ? 'pull' : 'import' if $p eq '/images/create';
	return 'volume-list' if $p eq '/volumes';
	return "$1-\L$method" if $p =~ m{^/(image|volume|network)s/};
	return 'other';
}

# The words with which a function of this text is called.
sub ends_of
{
	my ($text, $function) = @_;
	return $text =~ /\b\Q$function\E\([^;{]*?"([a-z][^"]*)"/g;
}

sub kinds_in
{
	my ($text) = @_;
	my ($method, $function, @found) = ('', '');
	while ($text =~ m{
		^(?<function>\w+)\(\w | ^\w[^\n(]*?\b(?<function>\w+)\([^;]*?\)\n\{
		| \.path\s=\s(?<list>"/) | "(?<method>GET|POST|PUT|DELETE|HEAD)"
		| "(?<path>/(?:_ping|info|version|events|commit|build|containers|exec|images|volumes
			|networks|auth|system|swarm|secrets)\b[^"\n]*)"}mgx) {
		my %got = %+;
		$function = $got{function} if defined $got{function};
		$method = $got{method} if defined $got{method};
		if (defined $got{list}) {
			$method = 'GET';
			pos($text) -= 2;
		}
		next unless defined $got{path};
		my $path = $got{path};
		# The name of a box, an image, a volume.
		$path =~ s{%\.\*s|%s(?=[/:?]|$)}{X}g unless $path =~ m{^/containers/%s/%s};
		my @paths = $path =~ m{^/containers/%s/%s}
		    ? map { "/containers/X/$_" } ends_of($text, $function) : $path;
		push @paths, $path unless @paths;
		push @found, map { kind_of($method, $_) } @paths;
	}
	return @found;
}

unless (caller) {
	my %kinds;
	for my $file (@ARGV) {
		open my $in, '<', $file or die "$file: $!\n";
		local $/;
		my $text = <$in>;
		$kinds{$_}{$file} = 1 for kinds_in($text);
	}
	print map { "$_\t" . join(' ', sort keys %{ $kinds{$_} }) . "\n" } sort keys %kinds;
}

1;
