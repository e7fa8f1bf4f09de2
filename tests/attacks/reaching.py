"""Attacks on what is not the sandbox's: files, processes, other sandboxes, the client."""

from __future__ import annotations

from tests.attacks.attack import REFUSED, Attack

_FILES = "Landlock; own user id or mounts; a read-only root"
_PROCS = "own user id or process namespace; no /proc but what Landlock allows, which is none"
_SIGNALS = "the kernel's permission check, Landlock's scope, or a process namespace"

REACHING = (
    Attack(
        "neighbour-s-files",
        _FILES,
        "for n in range(40):\n"
        "    for path in (f'/work/{n}/mine', f'../{n}/mine', f'/work/{n}'):\n"
        "        if os.path.realpath(path) not in (os.getcwd(), os.getcwd() + '/mine'):\n"
        "            attempt(path, os.open, path, os.O_RDONLY)\n"
        "            attempt(path, os.open, path + '/new', os.O_CREAT | os.O_WRONLY)",
        prints=REFUSED,
    ),
    Attack(
        "neighbours-listed",
        _FILES,
        "seen = []\ntry: seen = os.listdir('/work')\nexcept OSError: pass\nprint(seen)",
        prints=r"\[\]\n",
        landlock=True,
    ),
    Attack(
        "secrets-of-the-machine",
        _FILES,
        "for path in ('/etc/shadow', '/etc/hostname', '/root', '/home', '/run', '/run/control/s',\n"
        "        '/var/run/docker.sock', '/sys', '/sys/fs/cgroup', '/boot', '/dev', '/tmp'):\n"
        "    attempt(path, os.open, path, os.O_RDONLY)",
        prints=REFUSED,
        landlock=True,
    ),
    Attack(
        "system-overwritten",
        _FILES,
        "import numpy\nfor path in (numpy.__file__, sys.executable, '/etc/passwd', '/bin/sh',\n"
        "        '/opt/supervisor/boot.py', os.__file__):\n"
        "    attempt(path, os.open, path, os.O_WRONLY)\n"
        "    attempt(path, os.chmod, path, 0o777)\n"
        "    attempt(path, os.unlink, path)\n"
        "    attempt(path, os.open, os.path.dirname(path) + '/x', os.O_CREAT | os.O_WRONLY)",
        prints=REFUSED,
    ),
    Attack(
        "any-other-folder-to-write-to",
        _FILES,
        "folders = ['/', '/tmp', '/var/tmp', '/dev', '/dev/shm', '/dev/mqueue', '/run', '/proc',\n"
        "    '/run/lock', '/run/control', '/work', '/opt', '/opt/site', '/proc/self', '/usr']\n"
        "for top in ('/', '/dev', '/run', '/var', '/var/lib'):\n"
        "    try: folders += [os.path.join(top, name) for name in os.listdir(top)]\n"
        "    except OSError: pass\n"
        "for path in set(folders) - {os.getcwd()}:\n"
        "    attempt(path, os.open, path + '/x', os.O_CREAT | os.O_WRONLY)\n"
        "    attempt(path, os.mkdir, path + '/y')",
        prints=REFUSED,
    ),
    Attack(
        "proc-of-others",
        _PROCS,
        "for pid in others():\n"
        "    for name in ('environ', 'cmdline', 'mem', 'maps', 'fd', 'root', 'cwd', 'status'):\n"
        "        attempt(name, os.open, f'/proc/{pid}/{name}', os.O_RDONLY)\n"
        "    attempt('comm', os.open, f'/proc/{pid}/comm', os.O_WRONLY)\n"
        "    attempt('oom', os.open, f'/proc/{pid}/oom_score_adj', os.O_WRONLY)",
        prints=REFUSED,
        landlock=True,
    ),
    Attack(
        "proc-of-its-own",
        "Landlock, or an empty /proc",
        "for path in ('/proc/self/oom_score_adj', '/proc/self/mem', '/proc/sysrq-trigger',\n"
        "        '/proc/sys/kernel/core_pattern', '/proc/self/uid_map', '/proc/self/attr/exec'):\n"
        "    attempt(path, os.open, path, os.O_WRONLY)\n"
        "for path in ('/proc/self/environ', '/proc/mounts', '/proc/cpuinfo', '/proc/self/root/',\n"
        "        '/proc/net/tcp', '/proc/version', '/proc/self/fd'):\n"
        "    attempt(path, os.open, path, os.O_RDONLY)",
        prints=REFUSED,
        landlock=True,
    ),
    Attack(
        "control-groups",
        _FILES,
        "for path in ('/sys/fs/cgroup/memory/memory.limit_in_bytes',\n"
        "        '/sys/fs/cgroup/release_agent',\n"
        "        '/sys/fs/cgroup/cgroup.procs', '/sys/kernel/uevent_helper'):\n"
        "    attempt(path, os.open, path, os.O_WRONLY)",
        prints=REFUSED,
    ),
    Attack(
        "everyone-killed",
        _SIGNALS,
        "for pid in others():\n"
        "    attempt('kill', os.kill, pid, signal.SIGKILL)\n"
        "me = os.getpid()\nfor pid in range(2, 3000):\n    if pid != me:\n"
        "        try: os.kill(pid, signal.SIGSTOP); print('REACHED', pid)\n"
        "        except OSError: pass",
        prints=REFUSED,
    ),
    Attack(
        "everyone-killed-at-once",
        _SIGNALS,
        "os.kill(-1, signal.SIGKILL)",
        ends=("ok", "killed", "raised"),
        lost=None,
    ),
    Attack(
        "process-group-killed",
        "each sandbox has a process group of its own",
        "os.kill(0, signal.SIGTERM)",
        ends=("killed",),
        lost=True,
    ),
    Attack(
        "handles-of-processes",
        _SIGNALS,
        "for pid in others():\n"
        "    attempt('signal', lambda: signal.pidfd_send_signal(os.pidfd_open(pid), 9))\n"
        "    attempt('take a descriptor', lambda: call(438, os.pidfd_open(pid), 3, 0))\n"
        "    attempt('limits', resource.prlimit, pid, resource.RLIMIT_CPU, (0, 0))\n"
        "    attempt('processors', os.sched_setaffinity, pid, {0})",
        prints=REFUSED,
        not_held={"runsc": "processors can be chosen, without effect"},
    ),
    Attack(
        "handle-of-the-client",
        "it is outside the process namespace",
        "s = socket.socket(fileno=os.dup(3))\ntry:\n"
        "    handle = s.getsockopt(socket.SOL_SOCKET, 77)\n"
        "except OSError:\n    print('handle refused')\nelse:\n"
        "    attempt('signal', signal.pidfd_send_signal, handle, 0)\n"
        "    attempt('kill', signal.pidfd_send_signal, handle, 9)\n"
        "    attempt('take a descriptor', lambda: call(438, handle, 3, 0))\n"
        "    attempt('enter', lambda: call({'x86_64': 308}.get(os.uname().machine, 268), handle,"
        " 0x20000000))",
        prints=REFUSED,
    ),
    Attack(
        "tracing",
        "not dumpable, own user id, seccomp",
        "trace = {'x86_64': 101}.get(os.uname().machine, 117)\n"
        "for pid in others():\n"
        "    attempt('attach', call, trace, 16, pid, 0, 0)\n"
        "    attempt('seize', call, trace, 0x4206, pid, 0, 0)",
        prints=REFUSED,
    ),
    Attack(
        "memory-of-others",
        "own user id, seccomp",
        "read = {'x86_64': 310}.get(os.uname().machine, 270)\nbuffer = bytes(64)\n"
        "for pid in others():\n"
        "    attempt('read', call, read, pid, buffer, 1, buffer, 1, 0)\n"
        "    attempt('write', call, read + 1, pid, buffer, 1, buffer, 1, 0)",
        prints=REFUSED,
    ),
    Attack(
        "signals-by-a-descriptor-s-owner",
        _SIGNALS,
        "r, w = os.pipe()\nfcntl.fcntl(r, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)\n"
        "fcntl.fcntl(r, 10, 9)  # F_SETSIG\n"
        "for pid in others():\n"
        "    try: fcntl.fcntl(r, fcntl.F_SETOWN, pid)\n    except OSError: pass\n"
        "    os.write(w, b'x')",
        lost=None,
        ends=("ok", "killed"),
    ),
    Attack(
        "network",
        "no network device; seccomp",
        "for where in (('127.0.0.1', 22), ('1.1.1.1', 53), ('169.254.169.254', 80)):\n"
        "    attempt(where, socket.create_connection, where, 1)\n"
        "attempt('name', socket.getaddrinfo, 'example.org', 80)",
        prints=REFUSED,
    ),
    Attack(
        "sockets",
        "seccomp",
        "for family in (1, 2, 10, 16, 17, 38, 40):  # unix, inet, netlink, packet, alg, vsock ...\n"
        "    for kind in (1, 2, 3, 5):\n"
        "        attempt((family, kind), socket.socket, family, kind)\n"
        "attempt('datagrams', socket.socketpair, socket.AF_UNIX, socket.SOCK_DGRAM)",
        prints=REFUSED,
    ),
    Attack(
        "channels-to-neighbours",
        "seccomp; no shared folder",
        "numbers = {'x86_64': (29, 64, 68, 240)}.get(os.uname().machine, (194, 190, 186, 180))\n"
        "shm, sem, msg, queue = numbers\n"
        "attempt('shared memory', call, shm, 1, 4096, 0o1666)\n"
        "attempt('semaphores', call, sem, 1, 1, 0o1666)\n"
        "attempt('messages', call, msg, 1, 0o1666)\n"
        "attempt('queue', call, queue, b'x', 0o102, 0o666, 0)\n"
        "for path in ('/tmp/x', '/dev/shm/x', '/dev/mqueue/x', '/var/tmp/x', '/work/x'):\n"
        "    if os.path.dirname(path) == os.getcwd(): continue\n"
        "    attempt(path, os.open, path, os.O_CREAT | os.O_WRONLY)",
        prints=REFUSED,
    ),
    Attack(
        "another-user",
        "no capability, no new privileges",
        "for uid in (0, 1, VICTIM_UID):\n    if uid != os.getuid():\n"
        "        attempt('setuid', os.setuid, uid)\n        attempt('setgid', os.setgid, uid)\n"
        "        attempt('setreuid', os.setreuid, uid, uid)\n"
        "attempt('setgroups', os.setgroups, [0])",
        prints=REFUSED,
    ),
    Attack(
        "set-user-id-programs",
        "no new privileges; folders are mounted nosuid",
        "import shutil, glob\nshutil.copy('/usr/bin/id', 'me'); os.chmod('me', 0o6755)\n"
        "def told(*command):\n"
        "    try: return subprocess.run(command, capture_output=True, input=b'').stdout\n"
        "    except OSError: return b''\n"
        "print(len(set(os.getresuid())), told('./me', '-u') in (b'', b'%d\\n' % os.getuid()))\n"
        "print([p for p in glob.glob('/usr/bin/*') if os.stat(p).st_mode & 0o4000\n"
        "    and b'uid=0' in told(p, '-c', 'id')])",
        prints=r"1 True\n\[\]\n",
    ),
    Attack(
        "capabilities",
        "all are dropped, also from the bounding set's use: no new privileges",
        "header, data = (ctypes.c_uint * 2)(0x20080522, 0), (ctypes.c_uint * 6)()\n"
        "call({'x86_64': 125}.get(os.uname().machine, 90), header, data)\n"
        "print([*data], libc.prctl(39, 0, 0, 0, 0))\n"
        "data[0] = data[1] = 1 << 21\n"
        "attempt('capset', call, {'x86_64': 126}.get(os.uname().machine, 91), header, data)",
        prints=r"\[0, 0, 0, 0, 0, 0\] 1\ncapset refused\n",
    ),
    Attack(
        "descriptors-inherited",
        "all but four are closed",
        "def there(n):\n    try: fcntl.fcntl(n, fcntl.F_GETFD)\n    except OSError: return False\n"
        "    return True\nprint([n for n in range(1024) if there(n)])",
        prints=r"\[0, 1, 2, 3\]\n",
    ),
    Attack(
        "devices",
        "Landlock, no capability",
        "for path in ('/dev/mem', '/dev/kmsg', '/dev/sda', '/dev/vda', '/dev/fuse', '/dev/kvm',\n"
        "        '/dev/tty', '/dev/console', '/dev/ptmx', '/dev/net/tun'):\n"
        "    attempt(path, os.open, path, os.O_RDWR)\n"
        "attempt('mknod', os.mknod, 'disk', 0o60666, os.makedev(8, 0))",
        prints=REFUSED,
        landlock=True,
    ),
    Attack(
        "links-to-others",
        _FILES,
        "for path in ('/etc/passwd', '/usr/bin/id', VICTIM_FOLDER + '/mine'):\n"
        "    if os.path.realpath(path) != os.getcwd() + '/mine':\n"
        "        attempt('hard', os.link, path, 'hard')\n"
        "        attempt('move', os.rename, path, 'moved')\n"
        "os.symlink(VICTIM_FOLDER + '/mine', 'soft')\n"
        "if VICTIM_FOLDER != os.getcwd(): attempt('soft', open, 'soft')\n"
        "else: attempt('soft', open, 'soft')",
        prints=REFUSED,
    ),
    Attack(
        "payloads-of-others",
        "the supervisor never sees one, and children are forked from it",
        "import gc\nneedle = 'VICTIM' + '-SECRET'\n"
        "found = [o for o in gc.get_objects() if isinstance(o, (list, dict)) and any(\n"
        "    isinstance(v, str) and needle in v and v is not needle and len(v) > len(needle)\n"
        "    for v in (o.values() if isinstance(o, dict) else o))]\n"
        "frame, seen = sys._getframe(), []\nwhile frame: seen.append(repr(frame.f_locals)); "
        "frame = frame.f_back\n"
        "print(len([o for o in found if o is not globals()]), needle + ':' in repr(seen))",
        prints="0 False\n",
    ),
)
