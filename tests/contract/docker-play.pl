# SPDX-License-Identifier: MIT
# The engine that docker-break.pl plays where there is none: enough of the API for boxes, their
# files, their checkpoints, their images and their volumes.  A container is a copy of a root file
# system, a command one that is run there in namespaces of its own.  Containers have no first
# process, no network and no limits.
#
# DIR/boxes/ID.json and DIR/boxes/ID/ are a container, DIR/images/ID.json and DIR/images/ID/ an
# image, DIR/execs/ID.json a command.  DIR/api may say which version it speaks, DIR/min-api which is
# the oldest, DIR/layers of how many layers is what is imported.  Any reference to an image that is
# not there is the ROOT, but absent/NAME, which is that when it was pulled.
use strict;
use warnings;
use Fcntl qw(:flock);
use IO::Select;
use JSON::PP;

my ($home, $base);
my $json = JSON::PP->new->utf8->canonical;
my $zero = '0001-01-01T00:00:00Z';

sub play_begin
{
	($home, $base) = @_;
	mkdir "$home/$_" for qw(boxes images execs volumes);
	return;
}

sub new_id
{
	open my $in, '<', '/dev/urandom' or die "urandom: $!\n";
	sysread $in, my $bytes, 32;
	return unpack 'H*', $bytes;
}

sub now
{
	my @t = gmtime;
	return sprintf '%04d-%02d-%02dT%02d:%02d:%02d.5Z', $t[5] + 1900, $t[4] + 1, @t[3, 2, 1, 0];
}

sub load
{
	my ($what, $id) = @_;
	open my $in, '<', "$home/$what/$id.json" or return;
	local $/;
	return $json->decode(<$in>);
}

sub store
{
	my ($what, $id, $doc) = @_;
	open my $out, '>', "$home/$what/.$id.$$" or die "$home/$what: $!\n";
	print {$out} $json->encode($doc);
	close $out;
	rename "$home/$what/.$id.$$", "$home/$what/$id.json";
	return;
}

sub all_of
{
	my ($what) = @_;
	return grep { $_ } map { load($what, m{([0-9a-f]{64})\.json$}) } glob "$home/$what/*.json";
}

sub find_box
{
	my ($ref) = @_;
	my ($found) = grep { $_->{Id} eq $ref || $_->{Name} eq "/$ref" } all_of('boxes');
	return $found;
}

sub find_image
{
	my ($ref) = @_;
	my ($found) = grep { $_->{Id} eq $ref || grep { $_ eq $ref } @{ $_->{RepoTags} } }
	    all_of('images');
	return $found;
}

sub find_volume
{
	my ($name) = @_;
	my ($found) = grep { $_->{Name} eq $name } all_of('volumes');
	return $found;
}

sub unescape
{
	my ($text) = @_;
	$text =~ s/%([0-9A-Fa-f]{2})/chr hex $1/ge;
	return $text;
}

sub labels_fit
{
	my ($labels, $query) = @_;
	return 1 unless $query =~ /filters=([^&]*)/;
	for my $wanted (@{ $json->decode(unescape($1))->{label} // [] }) {
		my ($key, $value) = split /=/, $wanted, 2;
		return 0 unless exists $labels->{$key};
		return 0 if defined $value && $labels->{$key} ne $value;
	}
	return 1;
}

sub reference_fits
{
	my ($image, $query) = @_;
	return 1 unless $query =~ /filters=([^&]*)/;
	for my $wanted (@{ $json->decode(unescape($1))->{reference} // [] }) {
		return 0 unless grep { $_ eq $wanted || /\A\Q$wanted\E:/ } @{ $image->{RepoTags} };
	}
	return 1;
}

sub reply
{
	my ($to, $status, $doc) = @_;
	my $body = defined $doc ? $json->encode($doc) : '';
	return answer($to, $status, $body);
}

sub no_such
{
	my ($to, $what) = @_;
	return reply($to, 404, { message => "No such $what" });
}

sub create
{
	my ($to, $query, $body) = @_;
	my ($name) = $query =~ /name=([^&]*)/;
	my $spec = $json->decode($body);
	my $id = new_id();
	my $image = find_image($spec->{Image});
	return no_such($to, "image: $spec->{Image}") if !$image && $spec->{Image} =~ m{^absent/};
	open my $lock, '>', "$home/lock" or die "$home/lock: $!\n";
	flock $lock, LOCK_EX;
	return reply($to, 409, { message => "The name \"/$name\" is already in use by it" })
	    if find_box($name);
	system 'cp', '-a', '--reflink=auto', $image ? "$home/images/$image->{Id}" : $base,
	    "$home/boxes/$id";
	mkdir "$home/boxes/$id/workspace";
	my @volumes = grep { $_->{Type} eq 'volume' } @{ $spec->{HostConfig}{Mounts} // [] };
	make_volume($_->{Source}, $_->{VolumeOptions}{Labels}) for @volumes;
	store('boxes', $id, {
		Id => $id, Name => "/$name", Created => now(),
		Image => $image ? $image->{Id} : 'base',
		State => { Status => 'created', StartedAt => $zero, Error => '' },
		Config => { Labels => $spec->{Labels}, User => '', Env => $spec->{Env},
			Image => $spec->{Image} },
		HostConfig => $spec->{HostConfig}, NetworkSettings => { Ports => {} },
	});
	return reply($to, 201, { Id => $id, Warnings => [] });
}

sub end_commands
{
	my ($id) = @_;
	for my $exec (grep { $_->{ContainerID} eq $id && $_->{Running} } all_of('execs')) {
		kill 'KILL', $exec->{Pid} if $exec->{Pid};
	}
	return;
}

my %verbs = (
	start => ['running', qr/^(created|exited)$/], stop => ['exited', qr/^(running|paused)$/],
	kill => ['exited', qr/^(running|paused)$/], pause => ['paused', qr/^running$/],
	unpause => ['running', qr/^paused$/],
);

sub act
{
	my ($to, $verb, $box) = @_;
	my ($status, $from) = @{ $verbs{$verb} };
	return reply($to, 304) if $box->{State}{Status} eq $status && $verb =~ /^st/;
	my $no = $verb eq 'pause' && $status eq $box->{State}{Status} ? 'already paused'
	    : $verb eq 'unpause' ? 'not paused' : $box->{State}{Status};
	return reply($to, 409, { message => "Container is $no" })
	    unless $box->{State}{Status} =~ $from;
	end_commands($box->{Id}) if $status eq 'exited';
	$box->{State}{Status} = $status;
	$box->{State}{StartedAt} = now() if $verb eq 'start';
	store('boxes', $box->{Id}, $box);
	happens({ stop => 'die', kill => 'die' }->{$verb} // $verb, $box);
	return reply($to, 204);
}

# A line of DIR/events each.
sub happens
{
	my ($action, $box) = @_;
	open my $out, '>>', "$home/events" or die "$home/events: $!\n";
	syswrite $out, $json->encode({ Type => 'container', Action => $action,
		Actor => { ID => $box->{Id}, Attributes => $box->{Config}{Labels} } }) . "\n";
	return;
}

# From now on, until nobody listens.
sub events
{
	my ($to) = @_;
	open my $in, '+>>', "$home/events" or die "$home/events: $!\n";
	seek $in, 0, 2;
	put($to, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n");
	my $select = IO::Select->new($to);
	until ($select->can_read(0.05)) {
		my $n = sysread $in, my $lines, 65536;
		put($to, $lines) if $n;
	}
	return;
}

sub make_volume
{
	my ($name, $labels) = @_;
	my $volume = find_volume($name);
	return $volume if $volume;
	$volume = { Name => $name, Driver => 'local', Labels => $labels // {}, Scope => 'local',
		CreatedAt => now() };
	store('volumes', new_id(), $volume);
	return $volume;
}

sub is_used
{
	my ($name) = @_;
	return scalar grep { grep { $_->{Source} eq $name } @{ $_->{HostConfig}{Mounts} // [] } }
	    all_of('boxes');
}

sub volumes
{
	my ($to, $query) = @_;
	my $dangling = unescape($query) =~ /"dangling"/;
	return reply($to, 200, { Warnings => undef, Volumes => [
		grep { labels_fit($_->{Labels}, $query) && !($dangling && is_used($_->{Name})) }
		    all_of('volumes')] });
}

sub of_volume
{
	my ($to, $method, $name, $query, $body) = @_;
	if ($method eq 'POST') {
		my $spec = $json->decode($body);
		return reply($to, 201, make_volume($spec->{Name}, $spec->{Labels}));
	}
	my $volume = find_volume($name);
	return $query =~ /force=1/ ? reply($to, 204) : no_such($to, "volume: $name")
	    unless $volume;
	return reply($to, 200, $volume) if $method eq 'GET';
	return reply($to, 409, { message => 'volume is in use' }) if is_used($name);
	for my $file (glob "$home/volumes/*.json") {
		my ($id) = $file =~ m{([0-9a-f]{64})\.json$};
		unlink $file if load('volumes', $id)->{Name} eq $name;
	}
	return reply($to, 204);
}

sub destroy
{
	my ($to, $box) = @_;
	end_commands($box->{Id});
	unlink "$home/boxes/$box->{Id}.json";
	system 'rm', '-rf', "$home/boxes/$box->{Id}";
	happens('destroy', $box);
	return reply($to, 204);
}

sub list
{
	my ($to, $query) = @_;
	return reply($to, 200, [map { {
		Id => $_->{Id}, Names => [$_->{Name}], State => $_->{State}{Status},
		Created => time, Labels => $_->{Config}{Labels}, Image => $_->{Image},
	} } grep { labels_fit($_->{Config}{Labels}, $query) } all_of('boxes')]);
}

sub commit
{
	my ($to, $query, $body) = @_;
	my %q = map { split /=/, $_, 2 } split /&/, $query;
	my $box = find_box($q{container}) or return no_such($to, 'container');
	my $hex = new_id();
	my $more = length $body ? $json->decode($body)->{Labels} : undef;
	my %labels = (%{ $box->{Config}{Labels} }, %{ $more // {} });
	# A commit that takes long goes on when nobody waits for it any more.
	local $SIG{PIPE} = 'IGNORE';
	open my $begun, '>', "$home/committing" or die "$home: $!\n";
	select undef, undef, undef, 0.05 while -e "$home/slow";
	system 'cp', '-a', '--reflink=auto', "$home/boxes/$box->{Id}", "$home/images/sha256:$hex";
	store('images', $hex, {
		Id => "sha256:$hex", RepoTags => ["$q{repo}:$q{tag}"], Created => now(),
		Size => 1000, Config => { Labels => \%labels }, RootFS => { Layers => ['one'] },
	});
	return reply($to, 201, { Id => "sha256:$hex" });
}

sub images
{
	my ($to, $query) = @_;
	return reply($to, 200, [map { {
		Id => $_->{Id}, RepoTags => $_->{RepoTags}, Size => 1000, Created => time,
		Labels => $_->{Config}{Labels},
	} } grep { labels_fit($_->{Config}{Labels}, $query) && reference_fits($_, $query) }
	    all_of('images')]);
}

sub tag
{
	my ($to, $image, $query) = @_;
	my %q = map { split /=/, $_, 2 } split /&/, unescape($query);
	my ($hex) = $image->{Id} =~ /([0-9a-f]+)$/;
	my $name = "$q{repo}:$q{tag}";
	$image->{RepoTags} = [grep({ $_ ne $name } @{ $image->{RepoTags} }), $name];
	store('images', $hex, $image);
	return reply($to, 201);
}

# A copy of ROOT.
sub make_image
{
	my ($name, $labels) = @_;
	my $hex = new_id();
	my $layers = 1;
	if (open my $in, '<', "$home/layers") {
		($layers) = <$in> =~ /([0-9]+)/;
	}
	# A name has one image at a time.
	for my $other (grep { grep { $_ eq $name } @{ $_->{RepoTags} } } all_of('images')) {
		my ($old) = $other->{Id} =~ /([0-9a-f]+)$/;
		$other->{RepoTags} = [grep { $_ ne $name } @{ $other->{RepoTags} }];
		store('images', $old, $other);
	}
	system 'cp', '-a', '--reflink=auto', $base, "$home/images/sha256:$hex";
	store('images', $hex, {
		Id => "sha256:$hex", RepoTags => [$name], Created => now(), Size => 1000,
		Config => { Labels => $labels }, RootFS => { Layers => [1 .. $layers] },
	});
	return "sha256:$hex";
}

sub lines
{
	my ($to, @docs) = @_;
	return answer($to, 200, join '', map { $json->encode($_) . "\r\n" } @docs);
}

sub import
{
	my ($to, $query) = @_;
	my %labels;
	if ($query =~ /fromImage=([^&]*)&tag=([^&]*)/) {
		my ($name, $tag) = ($1, $2);
		return reply($to, 404, { message => 'pull access denied' })
		    unless $name =~ m{^absent/};
		make_image("$name:$tag", {});
		return lines($to, { status => "Pulling from $name" }, { status => "Pulled it" });
	}
	my ($repo, $tag) = $query =~ /repo=([^&]*)&tag=([^&]*)/;
	while ($query =~ /changes=LABEL%20([^&]*)/g) {
		my ($key, $value) = unescape($1) =~ /\A([^=]*)="(.*)"\z/ or next;
		$labels{$key} = $value;
	}
	return lines($to, { status => make_image("$repo:$tag", \%labels) });
}

# Of the Dockerfile nothing is done.
sub build
{
	my ($to, $query) = @_;
	my %q = map { split /=/, $_, 2 } split /&/, $query;
	my $id = make_image($q{t}, $json->decode(unescape($q{labels})));
	return lines($to, { stream => "Step 1/1 : FROM it\n" }, { stream => " ---> it\n" },
	    { aux => { ID => $id } }, { stream => "Successfully built it\n" });
}

sub delete_image
{
	my ($to, $ref) = @_;
	my $image = find_image($ref) or return no_such($to, 'image');
	my ($hex) = $image->{Id} =~ /([0-9a-f]+)$/;
	my @left = grep { $_ ne $ref } @{ $image->{RepoTags} };
	# One of several names goes by itself.
	if ($ref ne $image->{Id} && @left) {
		$image->{RepoTags} = \@left;
		store('images', $hex, $image);
		return reply($to, 200, [{ Untagged => $ref }]);
	}
	unlink "$home/images/$hex.json";
	system 'rm', '-rf', "$home/images/$image->{Id}";
	return reply($to, 200, [{ Deleted => $image->{Id} }]);
}

sub create_exec
{
	my ($to, $box, $body) = @_;
	my $id = new_id();
	return reply($to, 409, { message => "Container is $box->{State}{Status}" })
	    unless $box->{State}{Status} eq 'running';
	store('execs', $id, { ID => $id, ContainerID => $box->{Id}, Running => JSON::PP::false,
		Pid => 0, ExitCode => undef, Spec => $json->decode($body) });
	return reply($to, 201, { Id => $id });
}

# The command itself, in the container's root.
sub become
{
	my ($box, $spec) = @_;
	my $where = "$home/boxes/$box";
	%ENV = (HOME => '/root',
		PATH => '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin');
	for (@{ $spec->{Env} // [] }) {
		my ($key, $value) = split /=/, $_, 2;
		$ENV{$key} = $value if defined $value;
	}
	exec '/usr/bin/unshare', ($> ? '-r' : ()), '--mount', '--pid', '--ipc', '--fork',
	    '--kill-child', '/bin/sh', '-c', 'mount -t proc proc "$1/proc" &&
		mount -t tmpfs tmpfs "$1/dev" && ln -s /proc/self/fd "$1/dev/fd" &&
		for d in null zero full random urandom tty; do
			: >"$1/dev/$d" && mount --bind "/dev/$d" "$1/dev/$d" || exit 126
		done
		where=$1 cwd=$2; shift 2
		export where cwd
		exec chroot "$where" /bin/sh -c \'cd "$cwd" || exit 126; unset where cwd
			exec "$@"\' agentbox "$@"', 'agentbox', $where, $spec->{WorkingDir} || '/',
	    @{ $spec->{Cmd} };
	exit 126;
}

sub pump
{
	my ($client, $in, $out, $err) = @_;
	my $select = IO::Select->new($client, $out, $err);
	my $open = 2;
	while ($open) {
		for my $from ($select->can_read) {
			my $n = sysread $from, my $chunk, 32768;
			if ($from == $client) {
				put($in, $chunk) if $n;
				next if $n;
				$select->remove($client);
				close $in;
			} elsif ($n) {
				put($client, pack('CxxxN', $from == $out ? 1 : 2, $n) . $chunk);
			} else {
				$select->remove($from);
				$open--;
			}
		}
	}
	return;
}

sub start_exec
{
	my ($client, $exec) = @_;
	pipe my $in_read, my $in or die "pipe: $!\n";
	pipe my $out, my $out_write or die "pipe: $!\n";
	pipe my $err, my $err_write or die "pipe: $!\n";
	local $SIG{CHLD} = 'DEFAULT';
	my $pid = fork // die "fork: $!\n";
	if (!$pid) {
		open STDIN, '<', '/dev/null';
		open STDIN, '<&', $in_read if $exec->{Spec}{AttachStdin};
		open STDOUT, '>&', $out_write;
		open STDERR, '>&', $err_write;
		become($exec->{ContainerID}, $exec->{Spec});
	}
	close $_ for $in_read, $out_write, $err_write;
	@{$exec}{qw(Running Pid)} = (JSON::PP::true, $pid);
	store('execs', $exec->{ID}, $exec);
	put($client, "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\n"
	    . "Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n");
	pump($client, $in, $out, $err);
	waitpid $pid, 0;
	@{$exec}{qw(Running ExitCode)} =
	    (JSON::PP::false, $? & 127 ? 128 + ($? & 127) : $? >> 8);
	store('execs', $exec->{ID}, $exec);
	return;
}

sub of_box
{
	my ($to, $method, $box, $rest, $body) = @_;
	return reply($to, 200, $box) if $rest eq 'json';
	return act($to, $rest, $box) if $verbs{$rest};
	return create_exec($to, $box, $body) if $rest eq 'exec';
	return destroy($to, $box) if $method eq 'DELETE' && $rest eq '';
	return answer($to, 200, 'all of its files' x 1000, 'application/x-tar')
	    if $rest eq 'export';
	return reply($to, 200, { cpu_stats => { cpu_usage => { total_usage => 1000000 } },
		memory_stats => { usage => 4096 }, pids_stats => { current => 1 } })
	    if $rest eq 'stats';
	return no_such($to, 'page');
}

sub api
{
	my ($file, $usual) = @_;
	open my $in, '<', "$home/$file" or return $usual;
	my ($version) = <$in> =~ /([0-9.]+)/;
	return $version;
}

# 1.9 is older than 1.41.
sub is_older
{
	my ($x, $y) = map { /\.([0-9]+)/ } @_;
	return $x < $y;
}

# One request and its answer.
sub play_one
{
	my ($to) = @_;
	my $head = read_head($to) // return;
	my ($method, $path, $query) = $head =~ /\A(\S+) ([^? ]+)\??(\S*) /;
	my $body = '';
	each_piece($to, $head, sub { $body .= $_[0] if length $body < 1 << 20 });
	my ($spoken) = $path =~ s{^/v(1\.[0-9]+)}{} ? $1 : undef;
	my ($oldest, $newest) = (api('min-api', '1.12'), api('api', '1.41'));
	return reply($to, 400, { message => "client version $spoken is too old. Minimum supported "
		. "API version is $oldest, please upgrade your client to a newer version" })
	    if defined $spoken && is_older($spoken, $oldest);
	return put($to, 'HTTP/1.1 200 OK' . "\r\nApi-Version: $newest" .
	    "\r\nContent-Length: 2\r\n\r\nOK") if $path eq '/_ping';
	return reply($to, 200, { ID => 'played', ServerVersion => '20.10', Driver => 'copies',
		OperatingSystem => 'a test' }) if $path eq '/info';
	return create($to, $query, $body) if $path eq '/containers/create';
	return list($to, $query) if $path eq '/containers/json';
	return commit($to, $query, $body) if $path eq '/commit';
	return images($to, $query) if $path eq '/images/json';
	return import($to, $query) if $path eq '/images/create';
	return build($to, $query) if $path eq '/build';
	return events($to) if $path eq '/events';
	return volumes($to, $query) if $path eq '/volumes';
	return of_volume($to, $method, $1, $query, $body)
	    if $path =~ m{^/volumes/([^/]+)$};
	if ($path =~ m{^/images/(.*?)(/json|/tag)?$}) {
		return delete_image($to, $1) if $method eq 'DELETE';
		my $image = find_image($1);
		return tag($to, $image, $query) if $image && ($2 // '') eq '/tag';
		return $image ? reply($to, 200, $image) : no_such($to, 'image');
	}
	if ($path =~ m{^/exec/([0-9a-f]{64})/(start|json)$}) {
		my $exec = load('execs', $1) or return no_such($to, 'exec instance');
		return $2 eq 'start' ? start_exec($to, $exec) : reply($to, 200, $exec);
	}
	if ($path =~ m{^/containers/([^/]+)/?(.*)$}) {
		my $box = find_box($1) or return no_such($to, "container: $1");
		return of_box($to, $method, $box, $2, $body);
	}
	return no_such($to, 'page');
}

1;
