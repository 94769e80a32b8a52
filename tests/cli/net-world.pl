#!/usr/bin/perl
# SPDX-License-Identifier: MIT
# A small internet: HTTP, TCP and UDP echo, and a name server that logs what it is asked.
#
#	net-world.pl READY-FILE DNS-LOG DNS-ADDRESS UDP-ADDRESS...
#
# TCP 80, 443 and 8080 at every address say which address was asked; TCP 7, and UDP 7 at each
# UDP-ADDRESS, give back what they got; UDP and TCP 53 at DNS-ADDRESS answer for the zone below.
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;

my ($ready, $log, $dns, @echo) = @ARGV;
my %zone = (
	'good.example' => ['A', '198.51.100.2'],
	'other.example' => ['A', '198.51.100.3'],
	'alias.example' => ['CNAME', 'good.example'],
	'www.deep.example' => ['A', '198.51.100.2'],
	'host.deep.example' => ['A', '203.0.113.1'],
	'loop.deep.example' => ['A', '127.0.0.1'],
	'link.deep.example' => ['A', '169.254.169.254'],
);

sub listener
{
	my ($proto, $addr, $port) = @_;
	my @tcp = $proto eq 'tcp' ? (Listen => 32, ReuseAddr => 1) : ();
	return IO::Socket::INET->new(Proto => $proto, LocalAddr => $addr, LocalPort => $port, @tcp)
	    || die "$proto $addr $port: $!\n";
}

my %kind;
my $select = IO::Select->new;

sub watch
{
	my ($socket, $what) = @_;
	$kind{$socket} = $what;
	$select->add($socket);
	return;
}

sub name_of
{
	my ($msg) = @_;
	my ($at, @labels) = (12);
	while ((my $n = ord substr $$msg, $at, 1)) {
		push @labels, substr $$msg, $at + 1, $n;
		$at += $n + 1;
	}
	return (join('.', @labels), $at + 5);
}

sub wire
{
	return join('', map { chr(length) . $_ } split /\./, shift) . "\0";
}

sub answer
{
	my ($msg) = @_;
	my ($name, $end) = name_of(\$msg);
	my ($type) = unpack 'n', substr $msg, $end - 4, 2;
	my @records;
	open my $out, '>>', $log or die "$log: $!\n";
	print {$out} "$type $name\n";
	close $out or die;
	my $at = lc $name;
	while (my $z = $zone{$at}) {
		my ($kind, $value) = @$z;
		my $data = $kind eq 'A' ? pack('C4', split /\./, $value) : wire($value);
		my @head = ($kind eq 'A' ? 1 : 5, 1, 5, length $data);
		push @records, wire($at) . pack('n n N n', @head) . $data
		    if $type == 1 || $kind eq 'CNAME';
		last if $kind eq 'A';
		$at = $value;
	}
	my $code = $zone{lc $name} ? 0 : 3;
	return substr($msg, 0, 2) . pack('n5', 0x8180 | $code, 1, scalar @records, 0, 0)
	    . substr($msg, 12, $end - 12) . join '', @records;
}

watch(listener('tcp', '0.0.0.0', $_), 'http') for 80, 443, 8080;
watch(listener('tcp', '0.0.0.0', 7), 'echo');
watch(listener('udp', $_, 7), 'udp echo') for @echo;
watch(listener('udp', $dns, 53), 'dns');
watch(listener('tcp', $dns, 53), 'tcp dns');
open my $out, '>', $ready or die "$ready: $!\n";
close $out or die;

while (my @sockets = $select->can_read) {
	for my $s (@sockets) {
		my $what = $kind{$s};
		my $data = '';
		if ($what eq 'dns' || $what eq 'udp echo') {
			my $peer = $s->recv($data, 4096) // next;
			$s->send($what eq 'dns' ? answer($data) : $data, 0, $peer);
		} elsif ($what =~ /^(http|echo|tcp dns)$/) {
			my $c = $s->accept or next;
			watch($c, "$what client");
		} elsif (!$s->sysread($data, 65536)) {
			$select->remove($s);
			close $s;
		} elsif ($what eq 'http client') {
			my $body = $s->sockhost . "\n";
			$s->syswrite("HTTP/1.0 200 OK\r\nContent-Length: " . length($body)
			    . "\r\n\r\n$body");
			$select->remove($s);
			shutdown $s, 1;
			close $s;
		} elsif ($what eq 'tcp dns client') {
			my $reply = answer(substr $data, 2);
			$s->syswrite(pack('n', length $reply) . $reply);
		} else {
			$s->syswrite($data);
		}
	}
}
