"""Families of shared accelerator cards as data: node registers, resources that pods request, annotations of bound pods.

One description for each family of devices. The scheduler's plugin deviceshare has one engine that reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

WHOLE_MEMORY_PERCENT: Final = 100
ALL_CORES_PERCENT: Final = 100.0


class RegisterForm(Enum):
    """How nodes tell which cards they have."""

    CAPACITY = "amounts of memory and cards in the node's capacity"
    VOLCANO = "uuid,users,memory,type,health,mode:…"
    HAMI = "a JSON list of objects, or id,users,memory,cores,type,numa,health[,index[,mode]]:…"
    CHIPS = "names of chips (Ascend310P-0,…), with the cores of each in the node's labels"


class DemandForm(Enum):
    """How pods tell what they want."""

    CONTAINERS = "each container by its limits"
    POD = "the sum of the containers, on one set of cards"
    CHIP_CORES = "a number of cores: a template, or whole chips"


class AssignmentForm(Enum):
    """The annotations that name the cards of a bound pod."""

    VOLCANO = "uuid,type,memory,cores: for each card; containers joined by semicolons"
    HAMI = "the same, but every container ends with a semicolon"
    INDEXES = "numbers of cards, separated by commas"
    CHIPS = "numbers of chips, or number-template"


class DomainRule(Enum):
    """How cards that are close to each other count."""

    NONE = "not at all"
    ASKED = "within one domain when the pod asks for it"
    PREFERRED = "from the domain with most free cards"
    RING = "within one domain as far as it is large enough"


@dataclass(slots=True, frozen=True)
class CardTemplate:
    """A size in which cards of a family are cut."""

    name: str
    memory: float


@dataclass(slots=True, frozen=True)
class MigInstance:
    """A kind of MIG instance, and how many of it a card has in one geometry."""

    name: str
    memory: float
    count: int


@dataclass(slots=True, frozen=True)
class MigGroup:
    """One way to cut a card; all its instances exist together."""

    name: str
    instances: tuple[MigInstance, ...]


@dataclass(slots=True, frozen=True)
class MigGeometry:
    """The ways in which cards of these models (parts of their type) can be cut, the preferred one first."""

    models: tuple[str, ...]
    groups: tuple[MigGroup, ...]


@dataclass(slots=True, frozen=True)
class DeviceFamily:
    name: str
    count: str  # the resource that counts cards; the others may be missing
    memory: str = ""
    percentage: str = ""
    cores: str = ""
    register: str = ""  # node annotation
    form: RegisterForm = RegisterForm.HAMI
    demand: DemandForm = DemandForm.CONTAINERS
    needs: tuple[str, ...] = ()  # resources that a node with such cards has
    type_word: str = ""  # part of the type of every usable card
    use_type: str = ""  # pod annotations that select cards
    avoid_type: str = ""
    use_id: str = ""
    avoid_id: str = ""
    mode: str = ""
    group_policy: str = ""  # pod annotation: "spread" keeps pods of one group off each other's cards
    bind_domain: str = ""  # pod annotation: "true" asks for cards of one domain
    domains: DomainRule = DomainRule.NONE
    ring_size: int = 0
    assigned: str = ""  # pod annotation that says which cards a pod has
    assignment: AssignmentForm = AssignmentForm.HAMI
    copies: tuple[str, ...] = ()  # pod annotations with the same text, which the device plugin consumes
    node_key: str = ""
    time_key: str = ""
    bind_time_key: str = ""
    phase_key: str = ""
    predicate_time_key: str = ""
    details_key: str = ""  # pod annotation with the cards in JSON
    lock: str = ""  # node annotation that the device plugin needs between assignment and Allocate
    refusal: str = "not enough cards"
    highest_first: bool = False  # without a policy, higher numbered cards first
    fullest_first: bool = False  # without a policy, cards that are used most first
    whole_cards: bool = False  # a card has one user
    containers_apart: bool = False  # containers of a pod share no card
    checks_health: bool = True
    templates: tuple[CardTemplate, ...] = ()  # by memory
    memory_allocatable: float = 0.0  # of a whole card, where templates are cut
    memory_capacity: float = 0.0
    soft_mode: str = ""  # pod annotation: "hami-core" asks for a share that is not rounded to a template
    soft_node: str = ""  # node annotation that says whether the node offers this
    soft_default: bool = False
    geometries: tuple[MigGeometry, ...] = ()
    memory_factor: int = 1

    @property
    def resource_names(self) -> tuple[str, ...]:
        return tuple(name for name in (self.count, self.memory, self.percentage, self.cores) if name)

    @property
    def uncounted_names(self) -> tuple[str, ...]:
        """Resources of which nodes have no amount: they say how much of each card a container gets."""
        if self.form not in (RegisterForm.HAMI, RegisterForm.VOLCANO):
            return ()
        return tuple(name for name in (self.memory, self.percentage, self.cores) if name and name not in self.needs)

    @property
    def assignment_keys(self) -> tuple[str, ...]:
        """All annotations that a pod gets when it is assigned cards."""
        keys = (
            self.node_key, self.time_key, self.assigned, *self.copies, self.phase_key, self.bind_time_key,
            self.predicate_time_key, self.details_key,
        )  # fmt: skip
        return tuple(key for key in keys if key)


GPU_MEMORY, GPU_NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
PREDICATE_TIME: Final = "volcano.sh/predicate-time"

GPU_SHARE: Final = DeviceFamily(
    name="GpuShare",
    count=GPU_NUMBER,
    memory=GPU_MEMORY,
    register="volcano.sh/gpu-unhealthy-ids",
    form=RegisterForm.CAPACITY,
    demand=DemandForm.POD,
    assigned="volcano.sh/gpu-index",
    assignment=AssignmentForm.INDEXES,
    predicate_time_key=PREDICATE_TIME,
    lock="gpu",
    refusal="GpuShare no enough gpu memory",
)
GPU_COUNT: Final = DeviceFamily(
    name="GpuNumber",
    count=GPU_NUMBER,
    memory=GPU_MEMORY,
    register="volcano.sh/gpu-unhealthy-ids",
    form=RegisterForm.CAPACITY,
    demand=DemandForm.POD,
    assigned="volcano.sh/gpu-index",
    assignment=AssignmentForm.INDEXES,
    predicate_time_key=PREDICATE_TIME,
    refusal="GpuNumber no enough gpu number",
    whole_cards=True,
)


def _uniform(memory: float, *groups: tuple[tuple[str, float, int], ...]) -> tuple[MigGroup, ...]:
    """Groups of instances, each as its name, its part of the card's memory and how many there are."""
    return tuple(
        MigGroup(f"group{number}", tuple(MigInstance(name, memory * part, count) for name, part, count in group))
        for number, group in enumerate(groups, start=1)
    )


KNOWN_MIG_GEOMETRIES: Final = (
    MigGeometry(
        ("A30",),
        _uniform(24576, (("1g.6gb", 1 / 4, 4),), (("2g.12gb", 1 / 2, 2),), (("4g.24gb", 1, 1),)),
    ),
    *(
        MigGeometry(
            models,
            _uniform(
                memory,
                ((names[0], 1 / 8, 7),),
                ((names[1], 1 / 4, 3), (names[0], 1 / 8, 1)),
                ((names[2], 1 / 2, 2),),
                ((names[3], 1, 1),),
            ),
        )
        for models, memory, names in (
            (
                ("A100-SXM4-40GB", "A100-40GB-PCIe", "A100-PCIE-40GB"),
                40960,
                ("1g.5gb", "2g.10gb", "3g.20gb", "7g.40gb"),
            ),
            (
                ("A100-SXM4-80GB", "A100-80GB-PCIe", "A100-PCIE-80GB"),
                81920,
                ("1g.10gb", "2g.20gb", "3g.40gb", "7g.79gb"),
            ),
            (("H100-PCIE-80GB", "H100-SXM5-80GB", "H100-80GB"), 81920, ("1g.10gb", "2g.20gb", "3g.40gb", "7g.80gb")),
        )
    ),
)
"""What NVIDIA's cards can be cut into, for clusters whose device configuration does not say it."""

VGPU: Final = DeviceFamily(
    name="hamivgpu",
    count="volcano.sh/vgpu-number",
    memory="volcano.sh/vgpu-memory",
    cores="volcano.sh/vgpu-cores",
    register="volcano.sh/node-vgpu-register",
    form=RegisterForm.VOLCANO,
    needs=("volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"),
    type_word="NVIDIA",
    use_type="nvidia.com/use-gputype",
    avoid_type="nvidia.com/nouse-gputype",
    use_id="volcano.sh/vgpu-use-gpuuuid",
    avoid_id="volcano.sh/vgpu-nouse-gpuuuid",
    mode="volcano.sh/vgpu-mode",
    group_policy="volcano.sh/vgpu-podgroup-policy",
    assigned="volcano.sh/vgpu-ids-new",
    assignment=AssignmentForm.VOLCANO,
    copies=("volcano.sh/devices-to-allocate",),
    node_key="volcano.sh/vgpu-node",
    time_key="volcano.sh/vgpu-time",
    bind_time_key="volcano.sh/bind-time",
    phase_key="volcano.sh/bind-phase",
    lock="hamivgpu",
    refusal="hami-vgpuDeviceSharing error",
    highest_first=True,
    checks_health=False,
    geometries=KNOWN_MIG_GEOMETRIES,
)

HAMI_LOCK: Final = "hami.io/mutex.lock"


def hami_family(
    word: str,
    count: str,
    memory: str = "",
    cores: str = "",
    *,
    percentage: str = "",
    register: str = "",
    name: str = "",
    type_word: str = "",
    use_type: str = "",
    avoid_type: str = "",
    use_id: str = "",
    avoid_id: str = "",
    bind_domain: str = "",
    templates: tuple[CardTemplate, ...] = (),
    memory_allocatable: float = 0.0,
    geometries: tuple[MigGeometry, ...] = (),
    mode: str = "",
) -> DeviceFamily:
    """A family as HAMi's device plugins register them; `word` is part of their annotations."""
    return DeviceFamily(
        name=name or word,
        count=count,
        memory=memory,
        percentage=percentage,
        cores=cores,
        register=register or f"hami.io/node-register-{word}",
        needs=(count,),
        type_word=type_word,
        use_type=use_type,
        avoid_type=avoid_type,
        use_id=use_id or f"hami.io/use-{word}-uuid",
        avoid_id=avoid_id or f"hami.io/no-use-{word}-uuid",
        mode=mode,
        bind_domain=bind_domain,
        domains=DomainRule.ASKED if bind_domain else DomainRule.NONE,
        assigned=f"hami.io/{word}-devices-allocated",
        copies=(f"hami.io/{word}-devices-to-allocate",),
        node_key="hami.io/vgpu-node",
        time_key="hami.io/vgpu-time",
        bind_time_key="hami.io/bind-time",
        phase_key="hami.io/bind-phase",
        lock=HAMI_LOCK,
        refusal=f"no {name or word} device available",
        templates=templates,
        memory_allocatable=memory_allocatable,
        memory_capacity=memory_allocatable,
        geometries=geometries,
    )


VENDORS: Final = {
    family.name: family
    for family in (
        hami_family(
            "vgpu",
            "nvidia.com/gpu",
            "nvidia.com/gpumem",
            "nvidia.com/gpucores",
            percentage="nvidia.com/gpumem-percentage",
            register="hami.io/node-nvidia-register",
            name="nvidia",
            type_word="NVIDIA",
            use_type="nvidia.com/use-gputype",
            avoid_type="nvidia.com/nouse-gputype",
            use_id="nvidia.com/use-gpuuuid",
            avoid_id="nvidia.com/nouse-gpuuuid",
            bind_domain="nvidia.com/numa-bind",
            geometries=KNOWN_MIG_GEOMETRIES,
            mode="nvidia.com/vgpu-mode",
        ),
        hami_family(
            "xpu",
            "kunlunxin.com/vxpu",
            "kunlunxin.com/vxpu-memory",
            name="kunlun",
            templates=(CardTemplate("quarter", 24576), CardTemplate("half", 49152)),
            memory_allocatable=98304,
        ),
        hami_family(
            "mlu",
            "cambricon.com/vmlu",
            "cambricon.com/mlu.smlu.vmemory",
            "cambricon.com/mlu.smlu.vcore",
            register="hami.io/node-mlu-register",
            name="cambricon",
            use_type="cambricon.com/use-mlutype",
            avoid_type="cambricon.com/nouse-mlutype",
        ),
        hami_family(
            "dcu",
            "hygon.com/dcunum",
            "hygon.com/dcumem",
            "hygon.com/dcucores",
            register="hami.io/node-dcu-register",
            name="hygon",
            use_type="hygon.com/use-dcutype",
            avoid_type="hygon.com/nouse-dcutype",
            use_id="hygon.com/use-gpuuuid",
            avoid_id="hygon.com/nouse-gpuuuid",
        ),
        hami_family("iluvatar", "iluvatar.ai/vgpu", "iluvatar.ai/vcuda-memory", "iluvatar.ai/vcuda-core"),
        hami_family("enflame", "enflame.com/vgcu", "enflame.com/gcu-memory", "enflame.com/gcu-core"),
        hami_family(
            "metax-sgpu", "metax-tech.com/sgpu", "metax-tech.com/vmemory", "metax-tech.com/vcore", name="metax"
        ),
        hami_family("mthreads", "mthreads.com/vgpu", "mthreads.com/sgpu-memory", "mthreads.com/sgpu-core"),
    )
}
"""By the name with which the argument deviceshare.Families turns them on: number, memory, cores."""


def ascend_family(
    word: str,
    allocatable: float,
    capacity: float,
    templates: tuple[CardTemplate, ...],
    *,
    resource: str = "",
    memory: str = "",
    cores: str = "",
    offers_soft_shares: bool = False,
) -> DeviceFamily:
    """Ascend cards as HAMi's device plugin registers them; those of the 910 series are joined by networks."""
    count = resource or f"huawei.com/{word}"
    return DeviceFamily(
        name=word,
        count=count,
        memory=memory or f"{count}-memory",
        cores=cores or f"{count}-core",
        register=f"hami.io/node-register-{word}",
        needs=(count,),
        type_word=word,
        use_id=f"hami.io/use-{word}-uuid",
        avoid_id=f"hami.io/no-use-{word}-uuid",
        domains=DomainRule.PREFERRED if word.startswith("Ascend910") else DomainRule.NONE,
        assigned=f"hami.io/{word}-devices-allocated",
        copies=(f"hami.io/{word}-devices-to-allocate",),
        node_key="hami.io/vgpu-node",
        time_key="hami.io/vgpu-time",
        bind_time_key="hami.io/bind-time",
        phase_key="hami.io/bind-phase",
        predicate_time_key="predicate-time",
        details_key=f"huawei.com/{word}",
        lock=HAMI_LOCK,
        refusal="no ascend device available",
        containers_apart=True,
        templates=tuple(sorted(templates, key=lambda template: template.memory)),
        memory_allocatable=allocatable,
        memory_capacity=capacity,
        soft_mode="huawei.com/vnpu-mode",
        soft_node="hami-vnpu-core",
        soft_default=offers_soft_shares,
    )


def _ascend(word: str, memory: float, *templates: tuple[str, float]) -> DeviceFamily:
    return ascend_family(word, memory, memory, tuple(CardTemplate(name, size) for name, size in templates))


ASCEND: Final = (
    ascend_family(
        "Ascend310P",
        21527,
        24576,
        (CardTemplate("vir01", 3072), CardTemplate("vir02", 6144), CardTemplate("vir04", 12288)),
    ),
    _ascend("Ascend910A", 32768, ("vir02", 2184), ("vir04", 4369), ("vir08", 8738), ("vir16", 17476)),
    _ascend("Ascend910B2", 65536, ("vir03_1c_8g", 8192), ("vir06_1c_16g", 16384), ("vir12_3c_32g", 32768)),
    _ascend("Ascend910B3", 65536, ("vir05_1c_16g", 16384), ("vir10_3c_32g", 32768)),
    _ascend("Ascend910B4", 32768, ("vir05_1c_8g", 8192), ("vir10_3c_16g", 16384)),
)
"""Known where the device configuration names no others."""


def ring_family(kind: str, ring_size: int) -> DeviceFamily:
    """Whole Ascend cards as MindCluster's device plugin lists them; cards of one HCCS ring are close to each other."""
    return DeviceFamily(
        name=f"{kind}-ring",
        count=f"huawei.com/{kind}",
        register=f"huawei.com/{kind}",
        form=RegisterForm.CHIPS,
        demand=DemandForm.POD,
        needs=(f"huawei.com/{kind}",),
        domains=DomainRule.RING,
        ring_size=ring_size,
        assigned=f"huawei.com/{kind}",
        assignment=AssignmentForm.CHIPS,
        predicate_time_key="predicate-time",
        refusal=f"not enough {kind} on one ring",
        whole_cards=True,
    )


RINGS: Final = (ring_family("Ascend910", 4),)

NPU_CHIPS: Final = DeviceFamily(
    name="ascend310p-vNPU",
    count="huawei.com/npu-core",
    form=RegisterForm.CHIPS,
    demand=DemandForm.CHIP_CORES,
    needs=("huawei.com/npu-core",),
    assigned="huawei.com/npu-core",
    assignment=AssignmentForm.CHIPS,
    predicate_time_key="predicate-time",
    refusal="no chip has enough free cores",
    fullest_first=True,
)

VGPU_PERCENTAGE: Final = "volcano.sh/vgpu-memory-percentage"
"""Of volcano-vgpu; it counts where the device configuration names it."""
COUNTED_ON_CARDS_ONLY: Final = frozenset(
    name for family in (*VENDORS.values(), *ASCEND) for name in family.uncounted_names
) | {VGPU_PERCENTAGE}


def is_counted_on_cards_only(name: str) -> bool:
    """Whether a request for it says how much of a card a container gets, and asks for no amount of a node."""
    if name in COUNTED_ON_CARDS_ONLY:
        return True
    return name.startswith("huawei.com/Ascend") and name.endswith(("-memory", "-core"))
