import common

common.write(
    [
        f"{topic} Q0 {document} {rank} {rank} case"
        for topic in common.topics()
        for rank, document in enumerate(common.documents()[:10], start=1)
    ]
)
