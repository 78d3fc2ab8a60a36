#!/usr/bin/perl
# The elastic baseline in another language: the protocol is HTTP and JSON, whatever speaks them.
#
# Answers POST / on $PORT (8080) with the argument that BM25 finds for what the user has just said, on what arguments
# attack. One process for each connection, nothing remembered between them. Texts are handled as UTF-8 bytes.
use strict;
use warnings;
use IO::Socket::INET;

my $MAX_BODY = 4 << 20;
my $WORDS    = 60;
my $CONCEDE  = 'I have found no argument against that, so I leave the point to you.';
my $INDEX    = $ENV{ARGUMENTS_INDEX} // 'claimrev';
my ($HOST, $INDEX_PORT, $PREFIX) =
  ($ENV{ARGUMENTS_URL} // 'http://127.0.0.1:9200/arguments') =~ m{^http://([^/:]+):(\d+)(/.*?)?/?$}
  or die "ARGUMENTS_URL is not an address\n";
$PREFIX //= '';

# -- JSON: objects are hashes, arrays are arrays, text is bytes; numbers and words are references to their text ---------

sub decode {
    my ($text) = @_;
    my $value = value(\$text, 0);
    $text =~ /\G\s*/gc;
    die "more than one value\n" if (pos($text) // 0) < length $text;
    return $value;
}

sub value {
    my ($in, $depth) = @_;
    die "too deep\n" if $depth > 50;
    $$in =~ /\G\s*/gc;
    if ($$in =~ /\G\{\s*/gc) {
        my %found;
        return \%found if $$in =~ /\G\}/gc;
        while (1) {
            $$in =~ /\G\s*(?=")/gc or die "a key was expected\n";
            my $key = value($in, $depth + 1);
            $$in =~ /\G\s*:/gc or die "a colon was expected\n";
            $found{$key} = value($in, $depth + 1);
            next if $$in =~ /\G\s*,/gc;
            last if $$in =~ /\G\s*\}/gc;
            die "the end of an object was expected\n";
        }
        return \%found;
    }
    if ($$in =~ /\G\[\s*/gc) {
        my @found;
        return \@found if $$in =~ /\G\]/gc;
        while (1) {
            push @found, value($in, $depth + 1);
            next if $$in =~ /\G\s*,/gc;
            last if $$in =~ /\G\s*\]/gc;
            die "the end of an array was expected\n";
        }
        return \@found;
    }
    if ($$in =~ /\G"/gc) {
        my $found = '';
        while (1) {
            if    ($$in =~ /\G([^"\\\x00-\x1f]+)/gc) { $found .= $1 }
            elsif ($$in =~ /\G"/gc)                  { return $found }
            elsif ($$in =~ /\G\\u([0-9a-fA-F]{4})/gc) { $found .= character($in, hex $1) }
            elsif ($$in =~ /\G\\(["\\\/bfnrt])/gc)   { my $c = $1; $c =~ tr/bfnrt/\b\f\n\r\t/; $found .= $c }
            else                                     { die "text does not end\n" }
        }
    }
    return \"$1" if $$in =~ /\G(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null)/gc;
    die "a value was expected\n";
}

sub character {    # the bytes of a code point; two halves are put together, and one alone is replaced
    my ($in, $code) = @_;
    if ($code >= 0xd800 && $code < 0xdc00 && $$in =~ /\G\\u(d[c-f][0-9a-f]{2})/gci) {
        $code = 0x10000 + (($code - 0xd800) << 10) + (hex($1) - 0xdc00);
    }
    $code = 0xfffd if $code >= 0xd800 && $code < 0xe000;
    my $char = chr $code;
    utf8::encode($char);
    return $char;
}

sub encode {
    my ($value) = @_;
    return $$value if ref $value eq 'SCALAR';
    return '[' . join(',', map { encode($_) } @$value) . ']' if ref $value eq 'ARRAY';
    return '{' . join(',', map { encode("$_") . ':' . encode($value->{$_}) } sort keys %$value) . '}' if ref $value;
    $value =~ s/([\\"])/\\$1/g;
    $value =~ s/([\x00-\x1f])/sprintf '\\u%04x', ord $1/ge;
    return "\"$value\"";
}

# -- HTTP ---------------------------------------------------------------------------------------------------------------

sub receive {    # first line and body of what comes in
    my ($socket) = @_;
    my $first = <$socket>;
    return unless defined $first;
    my ($length, $lines) = (undef, 0);
    while (defined(my $line = <$socket>)) {
        last if $line =~ /^\r?\n$/;
        $length = $1 if $line =~ /^content-length:\s*(\d{1,9})\s*$/i;
        return if ++$lines > 100;
    }
    return if defined $length && $length > $MAX_BODY;
    my $body = '';
    if (defined $length) { read($socket, $body, $length) == $length or return }
    else { local $/; $body = <$socket> // '' }
    return ($first, $body);
}

sub search {
    my ($query) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => $HOST, PeerPort => $INDEX_PORT, Timeout => 10)
      or die "the index did not answer: $!\n";
    my $body = encode(
        {
            query   => { match => { attacks => $query } },
            size    => \'1',
            _source => { excludes => ['*_embedding*'] },
        }
    );
    print $socket "POST $PREFIX/$INDEX/_search HTTP/1.1\r\nHost: $HOST:$INDEX_PORT\r\nConnection: close\r\n"
      . "Content-Type: application/json\r\nContent-Length: " . length($body) . "\r\n\r\n$body";
    my ($first, $reply) = receive($socket);
    die "the index did not answer\n" unless defined $first && $first =~ m{^HTTP/1\.\d 200 };
    return decode($reply)->{hits}{hits};
}

sub shortened {    # the first sentences that have at most 60 words together; a longer first sentence is cut
    my ($text) = @_;
    my @words = split ' ', $text;
    return $text if @words <= $WORDS;
    my ($end) = grep { $words[ $_ - 1 ] =~ /[.!?]["')]*$/ } reverse 1 .. $WORDS;
    return join ' ', @words[ 0 .. ($end // $WORDS) - 1 ];
}

sub answer {
    my ($body) = @_;
    my $said = eval {
        my $last = decode($body)->{messages}[-1];
        die "\n" if $last->{role} ne 'user' || ref $last->{content};
        $last->{content};
    };
    return (400, { error => 'messages, please, the last of them by the user' }) unless defined $said;
    my $hits = eval { search($said) };
    return (503, { error => 'the index did not answer' }) unless ref $hits eq 'ARRAY';
    return (200, { content => $CONCEDE, arguments => [] }) unless @$hits;
    my $hit      = $hits->[0];
    my %argument = (%{ $hit->{_source} }, id => $hit->{_id}, key => \'1', score => $hit->{_score});
    return (200, { content => shortened($argument{text}), arguments => [ \%argument ] });
}

$SIG{CHLD} = 'IGNORE';
my $server = IO::Socket::INET->new(LocalPort => $ENV{PORT} // 8080, Listen => 64, ReuseAddr => 1, Proto => 'tcp')
  or die "cannot listen: $!\n";
print STDERR 'listening on ', $server->sockport, "\n";
while (1) {
    my $client = $server->accept or next;
    my $child = fork;
    if (!defined $child || $child) { close $client; next }
    $SIG{CHLD} = 'DEFAULT';
    alarm 60;
    my ($first, $body) = receive($client);
    exit 0 unless defined $first;
    my ($status, $data) =
      $first =~ /^POST / ? answer($body) : (405, { error => 'POST, please' });
    my $text = encode($data);
    print $client "HTTP/1.1 $status Answer\r\nContent-Type: application/json\r\nConnection: close\r\n"
      . 'Content-Length: ' . length($text) . "\r\n\r\n$text";
    close $client;
    exit 0;
}
