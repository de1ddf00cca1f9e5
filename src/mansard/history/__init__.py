"""Runs of one program over time: trends, and when and with which commit something changed."""

from mansard.history.ageing import Ageing, CeilingTrend, over_time
from mansard.history.changes import Change, change_points
from mansard.history.runs import Night, read_nights
from mansard.history.trends import History, Trend, history
from mansard.history.view import history_dict, history_view

__all__ = [
    "Ageing",
    "CeilingTrend",
    "Change",
    "History",
    "Night",
    "Trend",
    "change_points",
    "history",
    "history_dict",
    "history_view",
    "over_time",
    "read_nights",
]
