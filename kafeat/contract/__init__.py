"""The base classes of steps, the data that steps work on, and the descriptions of their parameters."""

from kafeat.contract.describe import nearest
from kafeat.contract.folds import Folded, Folds, RowKeys, cuts_by, turns
from kafeat.contract.step import DOUBLE, Sample
from kafeat.contract.threads import endable, share_work
from kafeat.contract.tile import InputRows, SparseRows, TextRows, dense, numbers_of
