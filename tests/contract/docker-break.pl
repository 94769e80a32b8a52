#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# A Docker engine that breaks on demand: in front of a real one, or of one that is played.
#
#	docker-break.pl SOCKET DIR ENGINE-SOCKET
#	docker-break.pl SOCKET DIR --play ROOT     (docker-play.pl says what that can do)
#
# DIR/log gets a line for each request: KIND METHOD PATH.  DIR/faults says what breaks, a line each:
#
#	KIND FAULT SKIP TIMES     the requests of this kind but the first SKIP; TIMES 0 = all others
#
# Kinds are those of docker-kinds.pl.  Faults, of which those marked * reach the engine first:
#
#	500      an error of the engine's       half   * half of the answer's JSON, well wrapped
#	503      one of something before it     short  * half of what was announced, then closed
#	big      an error of 1 MB               lost   * closed instead of the answer
#	reset    closed, nothing said           silent * no answer, although it was done
#	hang     no answer                      text     something that is not HTTP
#	cut    * of a stream: closed in the middle of a frame's head
#	mute   * of a stream: nothing after the head
#	open   * of a stream: all but its end
#	old      of ping: an API that nobody speaks any more
#	kill     the engine (its process is in DIR/victim) is killed by SIGKILL, as soon as it has
#	         the request; of a stream, when it has said something or heard 200 KB
use strict;
use warnings;
use Fcntl qw(:flock O_RDWR O_CREAT);
use File::Basename qw(dirname);
use IO::Select;
use IO::Socket::UNIX;
use Socket qw(SHUT_WR);

my ($socket, $dir, $engine, $root) = @ARGV;
our $play = $engine eq '--play';
require(dirname($0) . '/docker-kinds.pl');
if ($play) {
	require(dirname($0) . '/docker-play.pl');
	play_begin($dir, $root);
}

# The fault of this request, if any; what is left of it is written back.
sub fault_of
{
	my ($kind, $line) = @_;
	open my $lock, '>>', "$dir/log" or die "$dir/log: $!\n";
	flock $lock, LOCK_EX;
	syswrite $lock, "$line\n";
	open my $in, '<', "$dir/faults" or return '';
	my ($found, @kept) = ('');
	while (<$in>) {
		my ($k, $fault, $skip, $times) = split;
		if ($found || $k ne $kind) {
			push @kept, $_;
			next;
		}
		if ($skip > 0) {
			push @kept, join(' ', $k, $fault, $skip - 1, $times) . "\n";
			next;
		}
		$found = $fault;
		next if $times == 1;
		push @kept, join(' ', $k, $fault, 0, $times ? $times - 1 : 0) . "\n";
	}
	close $in;
	open my $out, '>', "$dir/faults" or die "$dir/faults: $!\n";
	print {$out} @kept;
	close $out;
	return $found;
}

# Buffered reading; undef at the end.
my %buffer;

sub fill
{
	my ($from) = @_;
	my $n = sysread $from, my $chunk, 65536;
	return 0 unless $n;
	$buffer{$from} .= $chunk;
	return 1;
}

sub read_head
{
	my ($from) = @_;
	$buffer{$from} //= '';
	until ($buffer{$from} =~ /\r\n\r\n/) {
		fill($from) or return;
	}
	$buffer{$from} =~ s/\A(.*?\r\n\r\n)//s;
	return $1;
}

sub take
{
	my ($from, $n) = @_;
	while (length($buffer{$from}) < $n) {
		fill($from) or return;
	}
	return substr $buffer{$from}, 0, $n, '';
}

sub put
{
	my ($to, $data) = @_;
	while (length $data) {
		my $n = syswrite $to, $data;
		return 0 unless $n;
		substr $data, 0, $n, '';
	}
	return 1;
}

# The body that a head announces, to a function, in pieces; whole pieces of chunks are one.
sub each_piece
{
	my ($from, $head, $sub, $to_end) = @_;
	if ($head =~ /^Transfer-Encoding: *chunked/mi) {
		for (;;) {
			until ($buffer{$from} =~ /\n/) {
				fill($from) or return 0;
			}
			$buffer{$from} =~ s/\A([0-9a-f]+)[^\n]*\n//i or return 0;
			my $n = hex $1;
			my $piece = take($from, $n + 2);
			return 0 unless defined $piece;
			return 1 unless $n;
			$sub->(substr $piece, 0, $n);
		}
	}
	if ($head =~ /^Content-Length: *([0-9]+)/mi) {
		my $left = $1;
		while ($left) {
			if (!length $buffer{$from}) {
				fill($from) or return 0;
			}
			my $piece = substr $buffer{$from}, 0, $left, '';
			$left -= length $piece;
			$sub->($piece);
		}
		return 1;
	}
	return 1 unless $to_end;
	do {
		$sub->($buffer{$from});
		$buffer{$from} = '';
	} while fill($from);
	return 1;
}

sub answer
{
	my ($to, $status, $body, $type) = @_;
	$type //= 'application/json';
	return put($to, "HTTP/1.1 $status Answer\r\nContent-Type: $type\r\nContent-Length: "
	    . length($body) . "\r\n\r\n$body");
}

# Both ways until the engine has no more.
sub relay
{
	my ($client, $up, $fault) = @_;
	my $select = IO::Select->new($client, $up);
	my $heard = 0;
	put($up, delete $buffer{$client} // '');
	my $said = delete $buffer{$up} // '';
	for (;;) {
		$said = substr $said, 0, 5 if $fault eq 'cut';
		put($client, $said);
		return if $fault eq 'cut' && length $said;
		kill_engine() if $fault eq 'kill' && (length $said || $heard > 200000);
		$said = '';
		for my $from ($select->can_read) {
			my $n = sysread $from, my $chunk, 65536;
			if ($from == $up) {
				stay($client) if !$n && $fault eq 'open';
				return unless $n;
				$said = $chunk;
			} elsif (!$n) {
				$select->remove($client);
				shutdown $up, SHUT_WR;
			} else {
				$heard += $n;
				put($up, $chunk);
			}
		}
	}
}

# Until the client is gone.
sub stay
{
	my ($client) = @_;
	1 while sysread $client, my $ignored, 65536;
	exit 0;
}

sub upstream
{
	my ($client, $head) = @_;
	my $up;
	if ($play) {
		socketpair $up, my $mine, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die "socketpair: $!\n";
		my $pid = fork // die "fork: $!\n";
		if (!$pid) {
			close $up;
			close $client;
			play_one($mine);
			exit 0;
		}
	} else {
		$up = IO::Socket::UNIX->new(Peer => $engine) or exit 0;
	}
	$head =~ s/^Connection: .*\r\n//mi unless $head =~ /^Upgrade:/mi;
	$head =~ s/\r\n\r\n\z/\r\nConnection: close\r\n\r\n/ unless $head =~ /^Upgrade:/mi;
	put($up, $head);
	return $up;
}

sub send_body
{
	my ($client, $head, $up) = @_;
	my $chunked = $head =~ /^Transfer-Encoding: *chunked/mi;
	each_piece($client, $head, sub {
		my ($piece) = @_;
		put($up, $chunked ? sprintf("%x\r\n%s\r\n", length $piece, $piece) : $piece);
	}) or exit 0;
	put($up, "0\r\n\r\n") if $chunked;
	return;
}

# Half of it, in a wrapping that is whole or is not.
sub halve
{
	my ($client, $up, $head, $fault) = @_;
	my $body = '';
	each_piece($up, $head, sub { $body .= $_[0] }, 1);
	my $half = substr $body, 0, length($body) / 2;
	$head =~ s/^(Transfer-Encoding|Content-Length|Connection):.*\r\n//gmi;
	my $length = length($fault eq 'half' ? $half : $body);
	$head =~ s/\r\n\r\n\z/\r\nContent-Length: $length\r\n\r\n/;
	put($client, $head . $half);
	exit 0 unless $fault eq 'half';
	return;
}

sub pass
{
	my ($client, $up, $head) = @_;
	my $chunked = $head =~ /^Transfer-Encoding: *chunked/mi;
	my $told = $chunked || $head =~ /^Content-Length:/mi || $head =~ m{\AHTTP/1.. (204|304)};
	$head =~ s/^Connection:.*\r\n//gmi if $told;
	put($client, $head);
	each_piece($up, $head, sub {
		my ($piece) = @_;
		put($client, $chunked ? sprintf("%x\r\n%s\r\n", length $piece, $piece) : $piece);
	}, !$told);
	put($client, "0\r\n\r\n") if $chunked;
	exit 0 unless $told;
	return;
}

# Before the engine is asked.  1: it was answered.
sub break_early
{
	my ($client, $head, $fault) = @_;
	exit 0 if $fault eq 'reset';
	stay($client) if $fault eq 'hang';
	if ($fault eq 'text') {
		put($client, "SSH-2.0-OpenSSH_9.2\r\n");
		exit 0;
	}
	if ($fault eq 'old') {
		put($client, "HTTP/1.1 200 OK\r\nApi-Version: 1.24\r\nContent-Length: 2\r\n\r\nOK");
		return 1;
	}
	return 0 unless $fault =~ /^(50[03]|big)$/;
	each_piece($client, $head, sub { });
	my $text = $fault eq 'big' ? 'all is broken, ' x 70000 : 'broken on purpose';
	answer($client, $fault eq 'big' ? 500 : $fault, "{\"message\":\"$text\"}\n");
	return 1;
}

sub kill_engine
{
	open my $in, '<', "$dir/victim" or die "$dir/victim: $!\n";
	my ($pid) = <$in> =~ /\A([0-9]+)\n\z/ or die "$dir/victim: no process\n";
	kill 'KILL', $pid;
	exit 0;
}

sub break_late
{
	my ($client, $up, $head, $fault) = @_;
	if ($fault =~ /^(lost|silent)$/) {
		each_piece($up, $head, sub { }, 1);
		stay($client) if $fault eq 'silent';
		exit 0;
	}
	return halve($client, $up, $head, $fault) if $fault =~ /^(half|short)$/;
	return pass($client, $up, $head);
}

sub one_request
{
	my ($client) = @_;
	my $head = read_head($client) // exit 0;
	my ($method, $path) = $head =~ /\A(\S+) (\S+) /;
	my $kind = kind_of($method, $path);
	my $fault = fault_of($kind, "$kind $method $path");
	return if break_early($client, $head, $fault);
	my $up = upstream($client, $head);
	send_body($client, $head, $up);
	kill_engine() if $fault eq 'kill' && $kind ne 'exec-start';
	my $reply = read_head($up) // exit 0;
	if ($reply =~ m{\AHTTP/1.. 101} || $kind =~ /^(exec-start|events)$/) {
		put($client, $reply);
		stay($client) if $fault eq 'mute';
		relay($client, $up, $fault);
		exit 0;
	}
	break_late($client, $up, $reply, $fault);
	exit 0 if $head =~ m{ HTTP/1\.0\r\n};
	delete $buffer{$up};
	close $up;
	return;
}

local $SIG{PIPE} = 'IGNORE';
local $SIG{CHLD} = 'IGNORE';
unlink $socket;
my $listener = IO::Socket::UNIX->new(Local => $socket, Listen => 128) or die "$socket: $!\n";
for (;;) {
	my $client = $listener->accept or next;
	my $pid = fork // next;
	if ($pid) {
		close $client;
		next;
	}
	close $listener;
	for (;;) {
		one_request($client);
	}
}
