"""Sets up a container's mounts, hostname, limits and user in the forked process. Standard library only.

The order from the agent (supervisor_protocol) lists what to set up; nothing is decided here.
"""

from __future__ import annotations

import errno
import os
import resource
import stat

from volcano.embedded.agent.kernel import linux, seccomp
from volcano.embedded.agent.processes import device_files
from volcano.embedded.agent.processes.supervisor_protocol import WITHOUT_DEVICES, WITHOUT_LINKS, Mount, Order

MAP_USERS = b"\0"
"""A holder sends this when its new user namespace needs its users mapped, and gets it back once they are."""
NO_SPACE = b"\1"
"""A holder's error begins with this when the disk is full: the same start may succeed later."""
MAX_SYMLINKS = 40
OPEN_TO_OTHERS = stat.S_IROTH | stat.S_IXOTH
SYSTEM_FOLDERS = ("proc", "sys", "dev", "tmp")
LAYERS_SIZE = "1g"
"""What a container can write into its home and its working folder, in memory; more belongs into a volume."""
MEMORY_DEVICES = ((1, 1), (1, 2), (1, 4), (1, 11))
"""mem, kmem, port, kmsg: major and minor numbers of Linux."""
MASKED_FILES = ("kcore", "keys", "timer_list", "sched_debug")
"""Of /proc: they show what the kernel has of the whole machine."""


class NoWorkingFolder(Exception):
    """The working folder does not exist, or the container's user may not enter it."""


def enter_pod(order: Order, namespaces: dict[str, int]) -> None:
    """Join the namespaces that the containers of a pod share."""
    for name, kind in (("net", linux.NEWNET), ("ipc", linux.NEWIPC)):
        if name in namespaces:
            linux.setns(namespaces[name], kind)


def make_view(order: Order) -> None:
    """Make the container's mounts and hostname. The caller is the first process of a new PID namespace."""
    linux.unshare(linux.NEWNS | linux.NEWUTS)
    linux.mount("none", "/", "", linux.MS_REC | linux.MS_PRIVATE)
    if order["hostname"]:
        linux.sethostname(order["hostname"])
    view = _View(order)
    _mount_system(view.prefix, hides_processes=order["own_processes"])
    view.mount_all()
    if order["read_only"] and order["root"] != "/":
        linux.make_top_read_only(view.prefix)
    if view.prefix:
        linux.pivot_root(view.prefix)


class _View:
    """The state while the mounts of one container are made."""

    def __init__(self, order: Order) -> None:
        self._mounts = order["mounts"]
        self._can_detach = linux.can_detach()
        # Sources are opened before anything is mounted over them, and before the machine's files become read-only.
        self._sources = [self._opened(each) for each in self._mounts]
        self._scratch = self._make_machine_read_only(order["scratch"])
        self._scratch_path, self._memory = order["scratch"], -1
        self._layers = 0
        self._own: list[str] = []  # paths that belong to the container: folders may be created there
        self.prefix = self._new_root(order)

    def _opened(self, each: Mount) -> int:
        if each["kind"] not in ("bind", "devices"):
            return -1
        if each["kind"] == "devices":
            os.makedirs(each["source"], exist_ok=True)
            device_files.make_devices(each["source"], each["options"].split(","))
        options = each["options"].split(",") if each["kind"] == "bind" else []
        first, steps = (each["source"], each["part"])
        if WITHOUT_LINKS in options:
            first, steps = "/", f"{each['source']}/{each['part']}"
        place = os.open(first, os.O_PATH | os.O_CLOEXEC)
        for name in filter(None, steps.split("/")):
            inner = os.open(name, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=place)
            os.close(place)
            place = inner
            if stat.S_ISLNK(os.fstat(place).st_mode):
                raise OSError(errno.ELOOP, f"{each['source']}/{each['part']}: {name} is a symbolic link")
        if WITHOUT_DEVICES in options and _is_disk_or_memory(os.fstat(place)):
            raise OSError(errno.EPERM, f"{each['source']}: only a privileged container may have this device")
        if not self._can_detach:
            return place
        tree = linux.detached(place)
        os.close(place)
        return tree

    def _make_machine_read_only(self, scratch: str) -> int:
        """The scratch folder, open: it alone stays writable. A kernel before 5.12 leaves everything as it is."""
        place = os.open(scratch, os.O_PATH | os.O_CLOEXEC)
        if not self._can_detach:
            return place
        tree = linux.detached(place)
        os.close(place)
        linux.make_read_only("/")
        linux.attach(tree, scratch)
        os.close(tree)
        return os.open(scratch, os.O_PATH | os.O_CLOEXEC)

    def mount_all(self) -> None:
        self._make_layers()
        self._make_mount_points()
        for each, source in zip(self._mounts, self._sources, strict=True):
            if each["kind"] == "layer":
                continue
            if each["kind"] == "hide" and not os.path.exists(self.prefix + each["target"]):
                continue  # not visible in the container anyway
            target = self._mount_point(each["target"], is_file=source >= 0 and not _is_directory(source))
            self._mount(target, each, source)
            if each["kind"] in ("bind", "tmpfs") and not each["read_only"]:
                self._own.append(target.rstrip("/") + "/")
            if source >= 0:
                os.close(source)
        os.close(self._scratch)
        if self._memory >= 0:
            os.close(self._memory)

    def _make_layers(self) -> None:
        """Make the layers that the order asks for, where nothing is mounted below: an overlay would hide that."""
        wanted = {each["target"]: each["options"] for each in self._mounts if each["kind"] == "layer"}
        if not wanted or not self._can_detach:
            return
        with open("/proc/self/mountinfo") as mounts:
            mounted = [line.split()[4] for line in mounts]
        for target, owner in wanted.items():
            path = _resolved(self.prefix, target)
            inside = path.rstrip("/") + "/"
            if path == "/" or not os.path.isdir(path) or any(inside.startswith(own) for own in self._own):
                continue
            if not any(each.startswith(inside) for each in mounted):
                self._overlay(path, path, self._in_memory(), owner)
                self._own.append(inside)

    def _in_memory(self) -> int:
        """A folder in memory for layers: on disk the folders of a layer would cost more than the rest of a start."""
        if self._memory < 0:
            place = f"{self._scratch_path}/tmp"  # open already, as the container's /tmp
            linux.mount("tmpfs", place, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, f"mode=0700,size={LAYERS_SIZE}")
            self._memory = os.open(place, os.O_PATH | os.O_CLOEXEC)
        return self._memory

    def _make_mount_points(self) -> None:
        """Make overlay layers before mounts: an overlay would hide what is mounted below it.

        Places count by their real paths: /var/run/secrets lies in the container's own /run, and needs no layer.
        """
        earlier: list[str] = []
        for each, source in zip(self._mounts, self._sources, strict=True):
            target = _resolved(self.prefix, each["target"]).rstrip("/") + "/"
            if each["kind"] not in ("hide", "layer") and not any(target.startswith(other) for other in earlier):
                self._mount_point(each["target"], is_file=source >= 0 and not _is_directory(source))
            if each["kind"] != "layer" and (source < 0 or _is_directory(source)):
                earlier.append(target)

    def _new_root(self, order: Order) -> str:
        """Make a new root, for an image or where a mount needs a top-level folder that the machine lacks."""
        staging = f"{order['scratch']}/root"
        if order["root"] != "/":
            os.makedirs(staging, exist_ok=True)
            self._overlay(order["root"], staging)
            self._own.append(staging + "/")
            if order["uid"] and not order["read_only"]:
                _give_folders(staging, order)
            for name in SYSTEM_FOLDERS:  # an image of one program lacks them
                os.makedirs(f"{staging}/{name}", exist_ok=True)
            return staging
        tops = {each["target"].split("/")[1] for each in self._mounts}
        if all(os.path.lexists(f"/{top}") for top in tops):
            return ""
        os.makedirs(staging, exist_ok=True)
        linux.mount("tmpfs", staging, "tmpfs", linux.MS_NODEV, "mode=0755,size=1m")
        for entry in os.scandir("/"):
            copy = f"{staging}/{entry.name}"
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), copy)
            elif entry.is_dir():
                os.mkdir(copy)
                linux.mount(entry.path, copy, "", linux.MS_BIND | linux.MS_REC)
        for top in tops:
            if not os.path.lexists(f"{staging}/{top}"):
                os.mkdir(f"{staging}/{top}")
                self._own.append(f"{staging}/{top}/")
        return staging

    def _mount_point(self, target: str, *, is_file: bool) -> str:
        """The path to mount at, created if missing in an overlay, never in the machine's own folders."""
        path = _resolved(self.prefix, target)
        if os.path.lexists(path):
            return path
        parent = os.path.dirname(path)
        while not os.path.isdir(parent):
            parent = os.path.dirname(parent)
        if not any((parent + "/").startswith(own) for own in self._own):
            self._overlay(parent, parent)
            self._own.append(parent.rstrip("/") + "/")
        _make_folders(os.path.dirname(path) if is_file else path)
        if is_file:
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW, 0o644))
        return path

    def _mount(self, target: str, each: Mount, source: int) -> None:
        match each["kind"]:
            case "bind" | "devices":
                if self._can_detach:
                    linux.attach(source, target)
                else:
                    linux.mount(f"/proc/self/fd/{source}", target, "", linux.MS_BIND | linux.MS_REC)
                if each["read_only"]:
                    linux.make_read_only(target)
                if WITHOUT_DEVICES in each["options"].split(",") and not stat.S_ISCHR(os.stat(target).st_mode):
                    linux.forbid_devices(target)
            case "tmpfs":
                linux.mount("tmpfs", target, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, each["options"])
            case "devpts":
                options = "newinstance,ptmxmode=0666,mode=0620"
                linux.mount("devpts", target, "devpts", linux.MS_NOSUID | linux.MS_NOEXEC, options)
            case "hide" if not os.path.isdir(target):
                linux.mount(f"{self.prefix}/dev/null", target, "", linux.MS_BIND)
            case "hide":
                linux.mount("tmpfs", target, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=0755,size=4k")
                linux.make_read_only(target)

    def _overlay(self, lower: str, target: str, folder: int = -1, owner: str = "") -> None:
        """Mount a writable layer over a folder; changes in it are visible to the container only.

        `owner`, a user and a group with a colon, may write at its top, if others may enter and read the folder anyway.
        """
        folder = folder if folder >= 0 else self._scratch
        name = f"layer-{self._layers}"
        self._layers += 1
        for part in (f"{name}", f"{name}/upper", f"{name}/work"):
            try:
                os.mkdir(part, 0o755, dir_fd=folder)
            except FileExistsError:
                pass
        _copy_rights(lower, f"{name}/upper", folder, owner)
        layer = f"/proc/self/fd/{folder}/{name}"
        options = f"lowerdir={_escaped(lower)},upperdir={layer}/upper,workdir={layer}/work"
        try:
            linux.mount("overlay", target, "overlay", 0, options + ",userxattr")
        except OSError:  # older kernels lack this option and do not need it
            linux.mount("overlay", target, "overlay", 0, options)


def _resolved(prefix: str, target: str) -> str:
    """A target's real path; symbolic links are resolved relative to the container's root."""
    if not prefix:
        return os.path.realpath(target)
    path = prefix
    parts = [part for part in target.split("/") if part not in ("", ".")]
    followed = 0
    while parts:
        part = parts.pop(0)
        if part == "..":
            path = path if path == prefix else os.path.dirname(path)
            continue
        step = f"{path}/{part}"
        if os.path.islink(step) and followed < MAX_SYMLINKS:
            followed += 1
            link = os.readlink(step)
            parts = [each for each in link.split("/") if each not in ("", ".")] + parts
            path = prefix if link.startswith("/") else path
        else:
            path = step
    return path


def _is_disk_or_memory(found: os.stat_result) -> bool:
    is_memory = stat.S_ISCHR(found.st_mode) and (os.major(found.st_rdev), os.minor(found.st_rdev)) in MEMORY_DEVICES
    return stat.S_ISBLK(found.st_mode) or is_memory


def _is_directory(descriptor: int) -> bool:
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")


def _give_folders(root: str, order: Order) -> None:
    """Let the container's user write at the top of its image and in its working folder, where images expect root."""
    for path in {root, _resolved(root, order["cwd"])}:
        if os.path.isdir(path):
            os.chown(path, order["uid"] or 0, order["gid"] or 0)


def _make_folders(path: str) -> None:
    """Make a folder and those above it that are missing; each belongs to whom the one above it belongs."""
    if os.path.isdir(path):
        return
    above = os.path.dirname(path)
    _make_folders(above)
    os.mkdir(path)
    known = os.stat(above)
    if known.st_uid != os.geteuid():
        os.chown(path, known.st_uid, known.st_gid)


def _copy_rights(source: str, target: str, folder: int, owner: str = "") -> None:
    """A layer's upper folder decides who may write at its top: those who may in the one below, or the owner."""
    known = os.stat(source)
    user, group = known.st_uid, known.st_gid
    if owner and known.st_mode & OPEN_TO_OTHERS == OPEN_TO_OTHERS:
        user, group = map(int, owner.split(":"))
    try:
        os.chown(target, user, group, dir_fd=folder)
    except OSError:
        pass  # a user that this namespace does not have
    os.chmod(target, stat.S_IMODE(known.st_mode) | stat.S_IRWXU, dir_fd=folder)


def _mount_system(prefix: str, *, hides_processes: bool) -> None:
    if hides_processes:
        linux.mount("proc", f"{prefix}/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
        for path in ("sys", "sysrq-trigger", "irq", "bus"):
            _remount_read_only(f"{prefix}/proc/{path}")
        for path in MASKED_FILES:
            if os.path.exists(f"{prefix}/proc/{path}"):
                linux.mount("/dev/null", f"{prefix}/proc/{path}", "", linux.MS_BIND)
    if os.path.isdir(f"{prefix}/sys"):
        linux.mount("/sys", f"{prefix}/sys", "", linux.MS_BIND | linux.MS_REC)
        linux.make_read_only(f"{prefix}/sys")


def _remount_read_only(path: str) -> None:
    try:
        linux.mount(path, path, "", linux.MS_BIND | linux.MS_REC)
        linux.make_read_only(path)
    except OSError:
        pass  # not every kernel has this path


def enter_users(order: Order, answer: int, go: int) -> None:
    """Enter a user namespace with the same user numbers, which confines root's rights. The supervisor maps them."""
    for name, (soft, hard) in order["limits"].items():
        _limit(getattr(resource, f"RLIMIT_{name.upper()}"), soft, hard)
    linux.unshare(linux.NEWUSER)
    os.write(answer, MAP_USERS)
    if os.read(go, 1) != MAP_USERS:
        raise OSError(errno.EPERM, "the users of the container's namespace could not be mapped")


def become(order: Order) -> None:
    """Set the container's limits, working directory and user; only exec may follow."""
    for name, (soft, hard) in order["limits"].items():
        _limit(getattr(resource, f"RLIMIT_{name.upper()}"), soft, hard)
    if order["cpus"]:
        os.sched_setaffinity(0, order["cpus"])
    os.umask(0o022)
    if os.geteuid() == 0 and not order["privileged"]:
        linux.drop_capabilities(order["capabilities"])
    if order["no_new_privileges"]:
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    if order["refuses_calls"]:
        seccomp.refuse_calls()
    if order["groups"] is not None:
        os.setgroups(order["groups"])
    if order["gid"] is not None:
        os.setresgid(order["gid"], order["gid"], order["gid"])
    if order["uid"] is not None:
        os.setresuid(order["uid"], order["uid"], order["uid"])
    try:
        os.chdir(order["cwd"])
    except OSError as error:
        raise NoWorkingFolder(f"working folder {order['cwd']}: {os.strerror(error.errno or 0)}") from None


def _limit(kind: int, soft: int, hard: int) -> None:
    """Set the limit, or the highest that this process may set: only root may set more than it has."""
    try:
        resource.setrlimit(kind, (soft, hard))
        return
    except (OSError, ValueError):
        pass
    _, ceiling = resource.getrlimit(kind)
    if ceiling != resource.RLIM_INFINITY:
        hard = ceiling if hard == resource.RLIM_INFINITY else min(hard, ceiling)
        soft = hard if soft == resource.RLIM_INFINITY else min(soft, hard)
    resource.setrlimit(kind, (soft, hard))
