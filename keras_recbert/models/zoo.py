"""Every named encoder of the papers. Imported for its registrations."""

from keras_recbert.models.registry import ModelCard, register

DEVLIN = "Devlin et al. 2018, BERT (arXiv:1810.04805)"
TURC = "Turc et al. 2019, Well-Read Students Learn Better (arXiv:1908.08962)"
WANG = "Wang et al. 2020, MiniLM (arXiv:2002.10957)"
LEI = "Lei et al. 2022, Simple Recurrence Improves Masked LMs (arXiv:2205.11588)"
TANG = "Tang et al. 2019, Distilling Task-Specific Knowledge (arXiv:1903.12136)"
LIU = "Liu et al. 2019, MKD (arXiv:1911.03588)"
HUANG = "Huang et al. 2020, TRANS-BLSTM (arXiv:2003.07000)"

SHAPES = {
    "tiny": {"num_layers": 2, "hidden_dim": 128, "num_heads": 2},
    "mini": {"num_layers": 4, "hidden_dim": 256, "num_heads": 4},
    "small": {"num_layers": 4, "hidden_dim": 512, "num_heads": 8},
    "minilm": {"num_layers": 6, "hidden_dim": 384, "num_heads": 12},
    "medium": {"num_layers": 8, "hidden_dim": 512, "num_heads": 8},
    "base": {"num_layers": 12, "hidden_dim": 768, "num_heads": 12},
    "large": {"num_layers": 24, "hidden_dim": 1024, "num_heads": 16},
}
NOT_IN_PAPER = "size not in the paper: depth and width of the BERT miniature"
LIKE_MINILM = "size not in the paper: depth and width of MiniLM, to start from one"
SST2, MNLI = "SST-2 validation accuracy", "MNLI-m validation accuracy"
SST2_TEST, MNLI_TEST = "SST-2 test accuracy", "MNLI-m test accuracy"
NER = "CoNLL-2003 validation F1"
SQUAD_EM, SQUAD_F1 = "SQuAD 1.1 validation exact match", "SQuAD 1.1 validation F1"
MRPC, RTE = "MRPC validation accuracy", "RTE validation accuracy"
STSB = "STS-B validation Pearson correlation"
COLA = "CoLA validation Matthews correlation"
GLUE8 = "GLUE validation average, 8 tasks"


def _not_in_paper(size):
    return LIKE_MINILM if size == "minilm" else NOT_IN_PAPER


def _add(name, size, num_parameters, paper, table, block="transformer", **kwargs):
    """Registers a card; keywords that are no fields of it are sizes."""
    fields = ModelCard.__dataclass_fields__
    card = {key: value for key, value in kwargs.items() if key in fields}
    sizes = {key: value for key, value in kwargs.items() if key not in fields}
    register(
        ModelCard(
            name=name,
            sizes={"block": block, **SHAPES[size], **sizes},
            num_parameters=num_parameters,
            paper=paper,
            table=table,
            **card,
        )
    )


# BERT --------------------------------------------------------------------------
for _size, _parameters, _sst2, _mnli in (
    ("tiny", 4_385_920, 83.2, 70.2),
    ("mini", 11_170_560, 85.9, 74.8),
    ("small", 28_763_648, 89.7, 77.6),
    ("medium", 41_373_184, 89.6, 80.0),
):
    _add(
        f"bert_{_size}",
        _size,
        _parameters,
        TURC,
        f"BERT-{_size.capitalize()} of the public miniatures",
        targets={SST2_TEST: _sst2, MNLI_TEST: _mnli},
    )
_add(
    "bert_minilm",
    "minilm",
    22_713_216,
    WANG,
    "section 4, 6 layers of 384: the public MiniLM-L6-H384",
    targets={SST2: 91.5, MNLI: 83.3, MRPC: 88.9, COLA: 47.5, RTE: 68.8},
    measured={SST2: 89.7, MRPC: 81.3, RTE: 59.7, COLA: 28.4, STSB: 86.2},
)
_add(
    "bert_base",
    "base",
    109_482_240,
    DEVLIN,
    "section 3, BERT-base; tables 1, 2, 3, 5",
    published_parameters="110M",
    targets={SST2: 92.7, MNLI: 84.4, SQUAD_EM: 80.8, SQUAD_F1: 88.5, NER: 96.4},
)
_add(
    "bert_large",
    "large",
    335_141_888,
    DEVLIN,
    "section 3, BERT-large; tables 1, 2, 3",
    published_parameters="340M",
    targets={
        SST2_TEST: 94.9,
        MNLI_TEST: 86.7,
        SQUAD_EM: 84.1,
        SQUAD_F1: 90.9,
        NER: 96.6,
    },
)
_add(
    "bert_large_48",
    "large",
    637_451_264,
    HUANG,
    "section 4.6 and table 4, TRANS/BERT-48",
    published_parameters="638M",
    targets={SQUAD_EM: 85.62, SQUAD_F1: 92.32},
    num_layers=48,
)
_add(
    "bert_ltr_base",
    "base",
    109_482_240,
    DEVLIN,
    "section 5.1 and table 5, LTR & No NSP",
    targets={SST2: 92.1, MNLI: 82.1, SQUAD_F1: 77.8},
    causal=True,
    note="the last real token is pooled: the first one sees nothing but itself",
)

# BERT-rab and SwishRNN -----------------------------------------------------------
_RAB = {
    "base": {SST2: 91.1, MNLI: 85.4},
    "large": {SST2: 93.1, MNLI: 88.9},
}
_SWISH = {
    "base": {SST2: 93.8, MNLI: 85.9},
    "large": {SST2: 95.3, MNLI: 88.9},
}
for _size, _parameters in (
    ("tiny", 4_386_048),
    ("small", 28_764_672),
    ("base", 109_486_848),
    ("large", 335_154_176),
):
    _add(
        f"bert_rab_{_size}",
        _size,
        _parameters,
        LEI,
        "table 1, BERT-rab; table 3",
        targets=_RAB.get(_size, {}),
        relative_attention_bias=True,
        note="" if _size in _RAB else NOT_IN_PAPER,
    )
for _size, _parameters, _recurrent_dim in (
    ("tiny", 4_396_032, 352),
    ("small", 28_844_032, 1376),
    ("minilm", 22_730_880, 1024),
    ("base", 109_548_288, 2048),
    ("large", 336_892_928, 2752),
):
    _add(
        f"swish_{_size}",
        _size,
        _parameters,
        LEI,
        "table 1, Ours; tables 2 and 3",
        block="swish_rnn",
        targets=_SWISH.get(_size, {}),
        recurrent_dim=_recurrent_dim,
        step_size=(1, 2, 4),
        note="" if _size in _SWISH else _not_in_paper(_size),
    )

# Started from MiniLM.
_MEASURED = {SST2: 89.9, MRPC: 81.6, RTE: 58.8, COLA: 30.4, STSB: 86.2}

# TRANS-BLSTM ---------------------------------------------------------------------
for _size, _parameters, _published, _targets in (
    ("tiny", 4_978_048, None, {}),
    ("small", 47_656_448, None, {}),
    ("minilm", 38_659_200, None, {}),
    (
        "base",
        236_967_168,
        "237M",
        {SST2: 94.26, MNLI: 86.21, GLUE8: 85.35, SQUAD_EM: 84.75, SQUAD_F1: 91.53},
    ),
    (
        "large",
        788_347_904,
        "789M",
        {SST2: 94.38, MNLI: 88.07, GLUE8: 86.50, SQUAD_EM: 87.72, SQUAD_F1: 93.82},
    ),
):
    _add(
        f"trans_blstm_{_size}",
        _size,
        _parameters,
        HUANG,
        "table 1, TRANS-BLSTM; tables 4 and 5",
        block="trans_blstm",
        published_parameters=_published,
        targets=_targets,
        measured=_MEASURED if _size == "minilm" else {},
        note="" if _targets else _not_in_paper(_size),
    )
for _size, _parameters, _published, _targets in (
    ("minilm", 28_030_848, None, {}),
    (
        "base",
        151_986_432,
        "152M",
        {SST2: 92.77, MNLI: 85.46, GLUE8: 84.77, SQUAD_EM: 84.06, SQUAD_F1: 90.76},
    ),
    (
        "large",
        486_235_136,
        "487M",
        {SST2: 94.61, MNLI: 88.19, GLUE8: 86.23, SQUAD_EM: 86.26, SQUAD_F1: 92.86},
    ),
):
    _add(
        f"trans_blstm_half_{_size}",
        _size,
        _parameters,
        HUANG,
        "table 1, TRANS-BLSTM-SMALL; tables 4 and 5",
        block="trans_blstm_half",
        published_parameters=_published,
        targets=_targets,
        note="" if _targets else _not_in_paper(_size),
    )
for _size, _parameters, _targets in (
    ("minilm", 31_569_792, {}),
    ("base", 180_297_984, {SQUAD_EM: 84.87, SQUAD_F1: 91.52}),
    ("large", 586_898_432, {}),
):
    _add(
        f"trans_blstm_1_{_size}",
        _size,
        _parameters,
        HUANG,
        "section 3.2, TRANS-BLSTM-1" + ("; table 3" if _targets else ""),
        block="trans_blstm_1",
        targets=_targets,
        note={
            "minilm": LIKE_MINILM,
            "large": "no scores in the paper at this size",
        }.get(_size, ""),
    )
_add(
    "blstm_base",
    "base",
    151_931_136,
    HUANG,
    "section 4.3 and table 2, BLSTM",
    block="blstm",
    targets={SQUAD_EM: 75.99, SQUAD_F1: 83.43},
    note="residual and LayerNorm around each BiLSTM, which the paper leaves open",
)

# BiLSTMs on word vectors; scores are those without a teacher --------------------------
# Table 3.2 counts all but the vectors, with two channels of 300 and two classes.
for _name, _parameters, _targets, _note, _sizes in (
    (
        "bilstm_student",
        9_758_000,
        {SST2_TEST: 86.7},
        "961,802 parameters without word vectors, 0.96M in table 3.2, with given "
        "vectors (two channels of 300) and two classes; 602,000 with one channel",
        {},
    ),
    (
        "bilstm_student_300",
        10_839_400,
        {},
        "the larger of the sizes that are searched",
        {"recurrent_dim": 300, "pooled_dim": 400},
    ),
    (
        "siamese_bilstm_student",
        10_178_200,
        {
            MNLI_TEST: 68.7,
            "QQP test F1": 63.7,
            "QQP test accuracy": 86.2,
            "STS-B test Pearson correlation": 66.9,
            "STS-B test Spearman correlation": 64.3,
            "MRPC test F1": 80.9,
            "MRPC test accuracy": 69.4,
        },
        "1,382,402 parameters without word vectors, counted as those of "
        "bilstm_student; 1.59M in table 3.2, which none of the sizes that are searched "
        "gives by equation 3.2: 150 units with 200 or 400 ReLUs have 1.14M or 1.38M, "
        "300 units 2.64M or 3.12M",
        {"siamese": True, "pooled_dim": 400},
    ),
):
    _default = {"num_layers": 1, "recurrent_dim": 150, "pooled_dim": 200}
    register(
        ModelCard(
            name=_name,
            sizes=_default | _sizes,
            paper=TANG,
            table="section 3.1 and table 1; Liu 2020, table 3.1",
            num_parameters=_parameters,
            targets=_targets,
            note=_note,
            encoder="WordBiLSTMEncoder",
        )
    )

# Students of a BERT; scores are those of distilled ones -------------------------------
for _name, _size, _parameters, _targets, _note, _sizes in (
    (
        "transformer_student",
        "base",
        45_691_392,
        {
            SST2_TEST: 90.1,
            MNLI_TEST: 79.2,
            "QQP test F1": 71.1,
            "QQP test accuracy": 89.4,
            "QNLI test accuracy": 83.5,
            "RTE test accuracy": 67.0,
            "STS-B test Pearson correlation": 81.5,
            "STS-B test Spearman correlation": 81.5,
            "MRPC test F1": 86.2,
            "MRPC test accuracy": 79.8,
        },
        "21.3M without embeddings and pooler, as table 4.1 counts; BERT's pooler "
        "stands for the ReLU layer of each task",
        {"pooled_layers": "all"},
    ),
    (
        "transformer_student_minilm",
        "minilm",
        17_389_824,
        {},
        f"{LIKE_MINILM}; read by the mean of its tokens: the [CLS] of MiniLM's first "
        "layers hardly differs from text to text. pooled_layers='all' is the thesis's",
        {},
    ),
):
    _add(
        _name,
        _size,
        _parameters,
        LIU,
        "section 3; Liu 2020, sections 4.1.3 and 4.3.2, table 4.1",
        targets=_targets,
        note=_note,
        num_layers=3,
        first_layers=True,
        **_sizes,
    )
_add(
    "swish_student",
    "mini",
    9_100_032,
    LEI,
    "section 2.2, SwishRNN alone",
    block="swish_rnn_only",
    note="ours: 2 SwishRNNs without attention, one in each direction; 1.15M without "
    "embeddings, 4.6 MB in float32",
    num_layers=2,
    recurrent_dim=704,
    step_size=(1, 2),
)
register(
    ModelCard(
        name="bi_attentive_student",
        sizes={"recurrent_dim": 256, "projection_dim": 300, "pooled_dim": 512},
        paper=LIU,
        table="section 3 and table 1; Liu 2020, section 4.1.2 and table 4.1",
        num_parameters=19_306_164,
        targets={
            SST2_TEST: 91.0,
            MNLI_TEST: 78.6,
            "QQP test F1": 70.7,
            "QQP test accuracy": 88.6,
            "QNLI test accuracy": 85.4,
            "RTE test accuracy": 67.3,
            "STS-B test Pearson correlation": 80.9,
            "STS-B test Spearman correlation": 80.9,
            "MRPC test F1": 85.4,
            "MRPC test accuracy": 79.7,
        },
        note="10.15M without word vectors, 10.2M in the paper, which does not say how "
        "wide these and the ReLU layer are",
        encoder="BiAttentiveEncoder",
    )
)
register(
    ModelCard(
        name="bi_attentive_word_student",
        sizes={"recurrent_dim": 256, "projection_dim": 300, "pooled_dim": 512},
        paper=LIU,
        table="section 3; Liu 2020, section 4.1.2 and table 4.2",
        num_parameters=19_306_164,
        targets={},
        note="bi_attentive_student on words, with a vocabulary of its own",
        encoder="BiAttentiveWordEncoder",
    )
)
