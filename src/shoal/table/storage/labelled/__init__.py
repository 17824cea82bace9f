"""Files of Stata, SPSS and SAS, with labels and reasons for missing values."""
