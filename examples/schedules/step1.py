# As written: three loops.
@S.schedule("matmul")
def as_written(sch):
    pass
